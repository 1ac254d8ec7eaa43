'use strict';
(() => {
  const data = JSON.parse(document.getElementById('data').textContent);
  const find = (id) => document.getElementById(id);
  const kept = async () => {
    const bytes = Uint8Array.from(atob(find('packed').textContent), (c) => c.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
    return JSON.parse(await new Response(stream).text());
  };
  document.querySelectorAll('[data-script]').forEach((one) => { one.hidden = false; });

  // Writing of numbers, as reports/numbers.py and reports/language.py.
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
    const [, per, form, most, least] = rungFor(page.ladders[quantity], mid, high);
    const scaled = [low / per, mid / per, high / per];
    const decimals = Math.max(Math.min(decimalsFor(...scaled), most), least);
    let texts = scaled.map((one) => grouped(one, decimals));
    const exact = texts[0] === texts[1] && texts[1] === texts[2];
    if (exact && texts[1].includes('.') && least < 0) texts = texts.map(() => texts[1].replace(/\.?0+$/, ''));
    const bound = atLeast ? page.words.at_least : '{}';
    const text = bound.replace('{}', () => form.replace('{}', () => texts[1]));
    if (exact) return [text, ''];
    const span = page.words['range.joint'].replace('{low}', () => texts[0]).replace('{high}', () => texts[2]);
    return [text, page.words.range.replace('{}', () => span)];
  };

  // The closed form, as reports/whatif.py.
  const times = (ends, factor) => ends.map((one) => one * factor);
  const outcome = (base, plan, knobs) => {
    const work = knobs.tokens / plan.tokens * (plan.goodput / knobs.goodput);
    const hours = work * knobs.runs;
    const energy = times(base.energy_mwh, hours * (knobs.pue / plan.pue));
    let cost = null;
    if (base.cost_usd) {
      const price = knobs.price !== null && plan.price ? knobs.price / plan.price : 1;
      const power = plan.electricity ? knobs.electricity / plan.electricity : 1;
      let moved = base.rental_usd * hours * price + base.electricity_usd * hours * (knobs.pue / plan.pue) * power;
      moved += base.other_usd * hours;
      cost = times(base.cost_usd, moved / (base.rental_usd + base.electricity_usd + base.other_usd));
    }
    return {
      cost_usd: cost,
      days: times(base.days, work),
      gpu_hours: times(base.gpu_hours, hours),
      energy_mwh: energy,
      carbon_t: times(energy, 1000 * knobs.grid / 1000),
      bill_usd: times(energy, 1000 * knobs.electricity),
    };
  };
  const quantities = { cost_usd: 'money', days: 'days', gpu_hours: 'plain', energy_mwh: 'energy', carbon_t: 'carbon', bill_usd: 'money' };

  function sliders(page) {
    const inputs = [...document.querySelectorAll('#sliders input')];
    const plan = page.knobs;
    let knobs = { ...plan };
    const put = (row, where, [text, range]) => {
      const small = document.createElement('small');
      small.textContent = range;
      row.querySelector('[data-' + where + ']').replaceChildren(text, small);
    };
    const shown = (ends, quantity, atLeast) => (ends && ends[1] ? write(page, quantity, ends, atLeast) : [page.words.none, '']);
    // Another precision has knobs of its own; what is moved here moves it in proportion.
    const own = (theirs) => Object.fromEntries(Object.keys(theirs).map((name) =>
      [name, knobs[name] === plan[name] ? theirs[name] : theirs[name] === null ? null : knobs[name]]));
    const fill = (where, state) => {
      const asked = page.plans.find((one) => one.precision === page.asked);
      const result = outcome(asked, plan, state);
      document.querySelectorAll('[data-row]').forEach((row) => {
        const name = row.dataset.row;
        put(row, where, shown(result[name], quantities[name], page.at_least && name === 'cost_usd'));
      });
      document.querySelectorAll('[data-precision]').forEach((row) => {
        const base = page.plans.find((one) => one.precision === row.dataset.precision);
        const theirs = outcome(base, base.knobs, state === plan ? base.knobs : own(base.knobs));
        put(row, where, shown(theirs.cost_usd || theirs.gpu_hours, theirs.cost_usd ? 'money' : 'gpu_hours', base.at_least));
      });
    };
    const show = () => {
      inputs.forEach((input) => {
        const value = knobs[input.name];
        const [text] = write(page, input.dataset.quantity, [value, value, value], false);
        find('o-' + input.name).textContent = text;
        input.setAttribute('aria-valuetext', text);
        if (Number(input.value) !== value) input.value = value;
      });
      fill('now', knobs);
      const moved = inputs.filter((input) => knobs[input.name] !== plan[input.name]);
      find('moved').textContent = page.words[moved.length ? 'whatif.moved' : 'whatif.same'];
      find('reset').hidden = !moved.length;
      find('whatif').classList.toggle('moved', moved.length > 0);
      return moved;
    };
    const remember = (moved) => {
      const hash = moved.length ? '#whatif?' + moved.map((input) => input.name + '=' + knobs[input.name]).join('&') : '#whatif';
      try { history.replaceState(null, '', hash); } catch { location.replace(hash); }
    };
    const recall = () => {
      knobs = { ...plan };
      const [place, query] = location.hash.split('?');
      if (place !== '#whatif' || !query) return;
      new URLSearchParams(query).forEach((text, name) => {
        const input = inputs.find((one) => one.name === name), value = Number(text);
        if (input && text.trim() && Number.isFinite(value)) knobs[name] = Math.min(Number(input.max), Math.max(Number(input.min), value));
      });
      find('whatif').scrollIntoView();
    };
    inputs.forEach((input) => input.addEventListener('input', () => {
      knobs[input.name] = Number(input.value);
      remember(show());
    }));
    find('reset').addEventListener('click', () => { knobs = { ...plan }; remember(show()); inputs[0].focus(); });
    find('sliders').addEventListener('submit', (event) => event.preventDefault());
    window.addEventListener('hashchange', () => { if (location.hash.startsWith('#whatif?')) { recall(); show(); } });
    fill('plan', plan);
    recall();
    show();
  }
  if (data && data.plans) sliders(data);

  const number = (cell) => {
    if (cell.dataset.v !== undefined) return Number(cell.dataset.v);
    const text = cell.firstChild ? cell.firstChild.textContent.trim() : '';
    return /^([≥<] ?)?[−+]?[\d,]+(\.\d+)?%?$/.test(text) ? Number(text.replace(/[≥<,%+ ]/g, '').replace('−', '-')) : text;
  };
  // Sorting: by the number behind a cell, else by its text; rows without figures stay last.
  document.querySelectorAll('table[data-sortable]').forEach((table) => {
    const heads = [...table.tHead.rows[0].cells], body = table.tBodies[0], first = [...body.rows];
    heads.forEach((head, column) => {
      const button = document.createElement('button');
      button.type = 'button';
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener('click', () => {
        const down = head.getAttribute('aria-sort') === 'ascending';
        const back = head.getAttribute('aria-sort') === 'descending';
        heads.forEach((one) => one.removeAttribute('aria-sort'));
        const key = (row) => {
          const cell = row.cells.length === heads.length ? row.cells[column] : null;
          return cell && number(cell);
        };
        const order = (a, b) => {
          const [x, y] = [key(a), key(b)];
          if (x === null || y === null) return (x === null) - (y === null);
          const by = typeof x === 'number' && typeof y === 'number' ? x - y : String(x).localeCompare(String(y));
          return down ? -by : by;
        };
        if (!back) head.setAttribute('aria-sort', down ? 'descending' : 'ascending');
        body.append(...(back ? first : [...first].sort(order)));
      });
    });
  });

  const save = (id, name, kind, text) => find(id).addEventListener('click', async () => {
    const link = document.createElement('a');
    link.href = URL.createObjectURL(new Blob([text(await kept())], { type: kind }));
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  });
  save('get-json', 'plan.json', 'application/json', (page) => JSON.stringify(page.document, null, 2) + '\n');
  save('get-csv', 'plan.csv', 'text/csv', (page) => page.csv);
  find('get-print').addEventListener('click', () => window.print());
  const opened = [];
  window.addEventListener('beforeprint', () => document.querySelectorAll('details:not([open])').forEach((one) => { one.open = true; opened.push(one); }));
  window.addEventListener('afterprint', () => opened.splice(0).forEach((one) => { one.open = false; }));
  globalThis.mpplan = { write, outcome };
})();
