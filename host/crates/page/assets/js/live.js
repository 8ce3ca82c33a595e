// The page during the run: the server announces new data, and the page fetches it.

function showLiveState(text, kind) {
  const state = byId('live-state');
  if (state.textContent !== text) state.textContent = text;
  state.className = `live-state ${kind}`;
}

function progressText(run) {
  const elapsed = withUnit(run.elapsed, 's');
  return isNumber(run.planned) && run.planned > 0 ? `Running · ${elapsed} of ${withUnit(run.planned, 's')}` : `Running · ${elapsed}`;
}

function showProgress(run) {
  if (run.state !== 'running') showLiveState(`Run ${STATES[run.state]}`, 'over');
  else showLiveState(progressText(run), 'running');
}

function startLive(page, embedded) {
  // The token is now a cookie, and is not needed in the address, the history and screenshots.
  if (location.search) history.replaceState(null, '', location.pathname + location.hash);
  if (embedded) showProgress(embedded.run);
  let fetching = false;
  let again = false;
  let over = Boolean(embedded && embedded.run.state !== 'running');
  const fetchData = async () => {
    if (fetching) {
      again = true;
      return;
    }
    fetching = true;
    try {
      const answer = await fetch('data', { cache: 'no-store', credentials: 'same-origin' });
      if (!answer.ok) throw new Error(`status ${answer.status}`);
      const data = await answer.json();
      if (data) {
        page.update(data);
        over = data.run.state !== 'running';
        showProgress(data.run);
      } else showLiveState('Waiting for the first results', 'running');
    } catch (lost) {
      if (!over) showLiveState('Connection lost; this is the last state', 'lost');
    }
    fetching = false;
    if (again) {
      again = false;
      fetchData();
    }
  };
  const events = new EventSource('events', { withCredentials: true });
  events.addEventListener('data', fetchData);
  events.addEventListener('error', () => {
    if (over) events.close();
    else showLiveState('Connection lost; this is the last state', 'lost');
  });
}
