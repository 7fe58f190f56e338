// The page from a server: asks for newer data while the job goes on. A module of its own, behind
// that of the page.

const POLL_MS = 2000;
const POLLS_AFTER_END = 5;  // what was recorded last comes a little later than the end

const live = {
  polls_left: POLLS_AFTER_END,
  from: `/api${location.pathname}/page`,

  say(text) {
    const place = document.getElementById('live');
    place.textContent = text;
    place.hidden = text === '';
  },

  // True: there may be more.
  take(data) {
    globalThis.sphase.show(data);
    if (data.starts.some(start => start.running)) {
      this.polls_left = POLLS_AFTER_END;
    } else {
      this.polls_left--;
    }
    this.say(this.polls_left > 0 ? 'live' : '');
    return this.polls_left > 0;
  },

  // True: to be asked again.
  async ask() {
    if (document.hidden) return true;
    const answer = await fetch(this.from, {cache: 'no-store'});
    if (answer.status === 401) {
      this.say('no longer live: the session has ended, `sphase web` begins a new one');
      return false;
    }
    if (!answer.ok) throw new Error(answer.statusText);
    return this.take(await answer.json());
  },

  // The next question comes after the answer to the last one, and of a large job less often: a page
  // has the server work for a fifth of the time at most.
  async poll() {
    const begun = performance.now();
    let again = true;
    try {
      again = await this.ask();
    } catch {
      this.say('the collector does not answer; trying again');
    }
    const took = performance.now() - begun;
    if (again) setTimeout(() => this.poll(), Math.max(POLL_MS, 4 * took));
  },
};

document.getElementById('jobs-link').hidden = false;
live.poll();
