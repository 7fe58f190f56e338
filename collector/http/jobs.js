// The list of jobs. Behind format.js and theme.js of the job's page.

const MOST = 200;
const AGAIN_MS = 10000;
const TYPING_MS = 250;

const jobs = {
  asked: 0,  // number of the last question: an answer to an earlier one comes too late
  timer: null,

  row(job) {
    const link =
        element('a', {text: job.id, attributes: {href: `/job/${encodeURIComponent(job.id)}`}});
    const state = job.state ?? DASH;
    const end_s = job.end_s ?? (job.state === 'RUNNING' ? Date.now() / 1000 : null);
    const time = job.begin_s !== null && end_s !== null ?
        duration_text(Math.max(0, end_s - job.begin_s) * 1e6) :
        DASH;
    return element('tr', {}, [
      element('th', {}, [link]),
      element(
          'td', {},
          [element('span', {text: state, cls: 'badge', attributes: {'data-state': state}})]),
      element('td', {text: job.user ?? (job.uid === null ? DASH : `uid ${job.uid}`)}),
      element('td', {text: job.name ?? DASH, cls: 'name'}),
      element('td', {text: job.partition ?? DASH}),
      element('td', {text: job.begin_s === null ? DASH : date_text(job.begin_s * 1e6)}),
      element('td', {text: time, cls: 'number'}),
    ]);
  },

  draw(data) {
    by_id('whose').textContent = data.all_users ? 'of all users' : 'yours';
    by_id('jobs').replaceChildren(...data.jobs.map(job => this.row(job)));
    by_id('said').textContent = data.jobs.length === MOST ?
        `the newest ${MOST}; search for others` :
        data.jobs.length === 0 ? 'none' :
                                 '';
  },

  async ask() {
    const question = ++this.asked;
    const words = by_id('search').value.trim();
    const answer =
        await fetch(`/api/jobs?limit=${MOST}&q=${encodeURIComponent(words)}`, {cache: 'no-store'});
    if (question !== this.asked) return;
    if (answer.status === 401) {
      by_id('said').textContent = 'the session has ended: `sphase web` begins a new one';
      return;
    }
    if (!answer.ok) throw new Error(answer.statusText);
    this.draw(await answer.json());
  },

  async load() {
    try {
      if (!document.hidden) await this.ask();
    } catch {
      by_id('said').textContent = 'the collector does not answer; trying again';
    }
    this.later(AGAIN_MS);
  },

  later(ms) {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.load(), ms);
  },
};

function on_search() {
  const words = by_id('search').value.trim();
  history.replaceState(null, '', words ? `/?q=${encodeURIComponent(words)}` : '/');
  jobs.later(TYPING_MS);
}

theme.load();
by_id('theme-button').addEventListener('click', () => theme.toggle());
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => theme.apply());
by_id('search').value = new URLSearchParams(location.search).get('q') ?? '';
by_id('search').addEventListener('input', on_search);
document.addEventListener('visibilitychange', () => jobs.later(0));
jobs.load();
