'use strict';
// The arithmetic and number formats of the page, independent of the page; the same as in reports/page/whatif.py and reports/text/numbers.py.

// Number formatting, as in reports/text/numbers.py and reports/text/language.py.
const magnitude = (x) => (x ? Number(Math.abs(x).toExponential().split('e')[1]) : 0);
const decimalsFor = (low, mid, high) => {
  const most = 2 - magnitude(mid);
  return high > low ? Math.max(Math.min(1 - magnitude(high - low), most), most - 1) : most;
};
const grouped = (value, decimals) => {
  const size = Math.abs(value), step = 10 ** -decimals;
  const text = decimals >= 0 ? size.toFixed(decimals) : (Math.round(size / step) * step).toFixed(0);
  const [whole, part] = text.split('.');
  const shown = whole.replace(/\B(?=(\d{3})+$)/g, ',') + (part ? '.' + part : '');
  return value < 0 && Number(text) ? '\u2212' + shown : shown;
};
const rungFor = (ladder, mid, high) => {
  let chosen = ladder[0];
  for (const rung of ladder) if (Math.abs(mid) >= rung[0] || (Math.abs(high) >= rung[0] && Math.abs(mid) >= 0.5 * rung[0])) chosen = rung;
  return chosen;
};
const write = (page, quantity, [low, mid, high], atLeast) => {
  const [, per, form, most, least, cents] = rungFor(page.ladders[quantity], mid, high);
  const scaled = [low / per, mid / per, high / per];
  let decimals = Math.max(Math.min(decimalsFor(...scaled), most), least);
  if (cents && decimals > 0) decimals = 2;
  let texts = scaled.map((one) => grouped(one, decimals));
  const exact = texts[0] === texts[1] && texts[1] === texts[2];
  if (exact && texts[1].includes('.') && least < 0) texts = texts.map(() => texts[1].replace(cents ? /\.00$/ : /\.?0+$/, ''));
  const bound = atLeast ? page.words.at_least : '{}';
  const text = bound.replace('{}', () => form.replace('{}', () => texts[1]));
  if (exact) return [text, ''];
  const span = page.words['range.joint'].replace('{low}', () => texts[0]).replace('{high}', () => texts[2]);
  return [text, page.words.range.replace('{}', () => span)];
};

// The closed form, as in reports/page/whatif.py.
const times = (ends, factor) => ends.map((one) => one * factor);
const bill = (base, plan, knobs, hours) => {
  const { idle_usd = 0, electricity_usd = 0, share_usd = 0, work_usd = 0, hourly_usd = 0, fixed_usd = 0, term_usd = 0, held_ratio = 1 } = base;
  const pue = knobs.pue / plan.pue, power = hours * pue * knobs.electricity;
  const rental = base.cost_usd ? base.rental_usd : base.gpu_hours[1] * knobs.price;
  const used = (rental + work_usd) * hours;
  const gpus = Math.max(term_usd, rental * held_ratio * hours, used) + share_usd * hours;
  const metered = plan.electricity && base.cost_usd;
  const billed = metered ? electricity_usd / plan.electricity : 1000 * base.energy_mwh[1];
  const idle = metered && idle_usd ? 1 + idle_usd / rental * (pue * knobs.electricity / plan.electricity - 1) : 1;
  const price = (plan.price ? knobs.price / plan.price : 1) * idle;
  return [gpus * price, billed * power + hourly_usd * hours + fixed_usd];
};
const outcome = (base, plan, knobs) => {
  const work = knobs.tokens / plan.tokens * (plan.goodput / knobs.goodput);
  const hours = work * knobs.runs;
  const energy = times(base.energy_mwh, hours * (knobs.pue / plan.pue));
  const ran = times(base.gpu_hours, 1 / base.gpu_hours[1]);
  const range = ([low, mid, high]) => [Math.min(low, mid), mid, Math.max(mid, high)];
  const whole = (...given) => bill(base, plan, ...given).reduce((a, b) => a + b);
  // The uncertainty of the price widens only what the GPUs cost; a price set with the slider has none.
  const at = (usd, end) => {
    const [gpus, others] = bill(base, plan, plan, end), [moved, beside] = bill(base, plan, knobs, end * hours);
    return usd > others && gpus ? (usd - others) / gpus * moved + beside : usd * ((moved + beside) / (gpus + others));
  };
  const known = base.cost_usd ? base.cost_usd[1] / whole(plan, 1) : 1;
  const cost = knobs.price !== plan.price ? range(ran.map((end) => known * whole(knobs, end * hours)))
    : base.cost_usd && range(base.cost_usd.map((usd, n) => at(usd, ran[n])));
  return {
    cost_usd: cost,
    days: times(base.days, work),
    gpu_hours: times(base.gpu_hours, hours),
    energy_mwh: energy,
    carbon_t: times(base.carbon_t, hours * (knobs.pue / plan.pue) * (knobs.grid / plan.grid)),
    bill_usd: times(energy, 1000 * knobs.electricity),
  };
};

// The CSV of a document, as in reports/formats/csv.py: a column is a path into a row.
const csvCell = (value) => {
  if (value === null || value === undefined) return '';
  const text = typeof value === 'string' && /^[=+\-@\t\r\n＝＋－＠]/.test(value) ? "'" + value : String(value);
  return /[",\r\n]/.test(text) ? '"' + text.replace(/"/g, '""') + '"' : text;
};
const table = (paths, page) => {
  const of = (view, rows, more) => (rows || []).map((row) => ({ view, ...more(row), ...row }));
  const rows = [
    ...of('same_gpus', page.plans, () => ({})), ...of('same_deadline', page.same_deadline, () => ({})),
    ...of('curve', page.curve, () => ({ precision: (page.question.precision || {}).value })),
    ...of('', page.unsupported, (row) => ({ fits: false, why_not: row.reason })),
  ];
  const heads = paths.map((path) => path.replace(/^layout\./, '').replaceAll('.', '_'));
  const at = (row, path) => path.split('.').reduce((value, name) => (value ?? {})[name], row);
  return [heads, ...rows.map((row) => paths.map((path) => at(row, path)))].map((row) => row.map(csvCell).join(',') + '\r\n').join('');
};
