// Sliders, sorting and downloads. The page is complete without this script.
(() => {
  const data = JSON.parse(document.getElementById('data').textContent);
  const find = (id) => document.getElementById(id);
  // Ascii85 with `v` for `<`: five letters encode four bytes, and a shorter last group is padded.
  const unpacked = (text) => {
    const bytes = new DataView(new ArrayBuffer(text.length));
    const letters = text.replaceAll('v', '<') + 'uuuu';
    for (let n = 0; n < text.length / 5; n++) {
      let word = 0;
      for (let k = 0; k < 5; k++) word = 85 * word + letters.charCodeAt(5 * n + k) - 33;
      bytes.setUint32(4 * n, word);
    }
    return bytes.buffer.slice(0, Math.floor(text.length * 4 / 5));
  };
  const said = [...document.querySelectorAll('#sources tbody tr')];
  const kept = async () => {
    const stream = new Blob([unpacked(find('packed').textContent)]).stream().pipeThrough(new DecompressionStream('gzip'));
    const [names, shaped] = JSON.parse(await new Response(stream).text());
    // An object is the number of its list of keys, then its values; a list begins with -1.
    const opened = (value) => !Array.isArray(value) ? value : value[0] < 0 ? value.slice(1).map(opened)
      : Object.fromEntries(names[value[0]].map((name, n) => [name, opened(value[n + 1])]));
    const [head, held, tail] = opened(shaped);
    const whole = { ...head, ...tail };
    (whole.evidence || []).forEach((one) => ['what', 'source', 'date'].forEach((name, n) => {
      if (typeof one[name] === 'number') one[name] = said[one[name]].cells[n].textContent;
    }));
    return { document: whole, csv: typeof held === 'string' ? held : table(held, whole) };
  };
  document.querySelectorAll('[data-script]').forEach((one) => { one.hidden = false; });

  const quantities = { cost_usd: 'money', days: 'days', gpu_hours: 'plain', energy_mwh: 'energy', carbon_t: 'carbon', bill_usd: 'money' };

  function sliders(page) {
    const inputs = [...document.querySelectorAll('#sliders input')];
    const plan = page.knobs;
    let knobs = { ...plan };
    const put = (row, where, [text, range]) => {
      const small = document.createElement('i');
      small.textContent = range;
      row.querySelector('[data-' + where + ']').replaceChildren(text, small);
    };
    const shown = (ends, quantity, atLeast) => (ends && ends[1] ? write(page, quantity, ends, atLeast) : [page.words.none, '']);
    // Another precision keeps its own knobs, except for those that were moved here.
    const own = (theirs) => Object.fromEntries(Object.keys(theirs).map((name) =>
      [name, knobs[name] === plan[name] ? theirs[name] : knobs[name]]));
    const fill = (where, state) => {
      const asked = page.plans.find((one) => one.precision === page.asked);
      const result = outcome(asked, plan, state);
      document.querySelectorAll('[data-row]').forEach((row) => {
        const name = row.dataset.row;
        put(row, where, shown(result[name], quantities[name], page.at_least && name === 'cost_usd'));
      });
      document.querySelectorAll('[data-precision]').forEach((row) => {
        const base = page.plans.find((one) => one.precision === row.dataset.precision);
        const its = base.knobs || plan;
        const theirs = outcome(base, its, state === plan ? its : own(its));
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
      // The result beside the sliders, also for readers who hear it: the first figure that is known.
      const [name, , told] = [...document.querySelectorAll('[data-row]')].find((row) => row.cells[2].textContent !== page.words.none).cells;
      const result = page.words['whatif.moved'].replace('{name}', () => name.textContent).replace('{figure}', () => told.textContent);
      find('moved').textContent = moved.length ? result : page.words['whatif.same'];
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
  // Sorting uses the number behind a cell, else its text; rows without figures stay last.
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

  // Only a table that is wider than its place takes the focus, to be scrolled by keys.
  const watch = new ResizeObserver((seen) => seen.forEach(({ target }) => {
    const place = target.closest('.scroll');
    place.tabIndex = place.scrollWidth > place.clientWidth ? 0 : -1;
  }));
  document.querySelectorAll('.scroll, .scroll > table').forEach((one) => watch.observe(one));

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
})();
