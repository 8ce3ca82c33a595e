// Configuration, plugins, versions and machine of the run.

// YAML with highlighted keys.
function yaml(text) {
  return text.split('\n').flatMap((line) => {
    const match = /^(\s*(?:- )*)([A-Za-z_][\w.-]*)(:)(.*)$/.exec(line);
    if (!match) return [el('span', { class: /^\s*#/.test(line) ? 'comment' : null }, line), '\n'];
    return [match[1], el('span', { class: 'yaml-key' }, match[2]), match[3], match[4], '\n'];
  });
}

function pairs(title, facts) {
  return facts.length ? el('div', { class: 'block' }, el('h3', {}, title),
    el('dl', { class: 'pairs' }, facts.flatMap(({ name, value }) => [el('dt', {}, name), el('dd', {}, value)]))) : null;
}

function showSetup(page) {
  const { configuration, plugins = [], plugin_use: used = [], machine = [], versions = [] } = page.data;
  const copied = el('span', { class: 'copied', role: 'status' });
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(configuration);
      copied.textContent = 'Copied';
    } catch (refused) {
      copied.textContent = 'The browser refuses to copy; select the text instead';
    }
  };
  show('setup',
    plugins.length ? el('div', { class: 'block' }, el('h3', {}, 'Plugins'), table('Plugins', [{ label: 'Plugin' }, { label: 'Role' }, { label: 'Version' }, { label: 'Source' }, { label: 'Digest' }],
      plugins.map((plugin) => el('tr', {}, el('th', { scope: 'row' }, plugin.name), el('td', {}, plugin.role), el('td', {}, plugin.version || ''),
        el('td', {}, plugin.source || ''), el('td', {}, el('code', { class: 'digest' }, plugin.digest || ''))))))
      : null,
    used.length ? el('div', { class: 'block' }, el('h3', {}, 'Resources of plugins'), table('Resources of plugins', [{ label: 'Plugin' }, { label: 'Calls', right: true }, { label: 'Longest call' }, { label: 'Memory of an instance' }, { label: 'Largest result' }, { label: 'Log lines', right: true }, { label: 'Dropped', right: true }, { label: 'Restarts', right: true }],
      used.map((plugin) => el('tr', {}, el('th', { scope: 'row' }, plugin.name), el('td', { class: 'right' }, count(plugin.calls)), el('td', {}, plugin.longest_call),
        el('td', {}, plugin.memory), el('td', {}, plugin.output || ''), el('td', { class: 'right' }, count(plugin.log_lines)), el('td', { class: 'right' }, count(plugin.dropped_log_lines)), el('td', { class: 'right' }, count(plugin.restarts))))))
      : null,
    machine.length || versions.length ? el('div', { class: 'columns' }, pairs('Machine', machine), pairs('Versions', versions)) : null,
    configuration ? el('details', { class: 'block configuration', open: configuration.length < 6000 }, el('summary', {}, el('h3', {}, 'Resolved configuration')),
      el('div', { class: 'toolbar' }, el('button', { type: 'button', onclick: copy }, 'Copy'), copied),
      el('pre', { tabindex: '0', 'aria-label': 'Resolved configuration' }, el('code', {}, yaml(configuration)))) : null);
}
