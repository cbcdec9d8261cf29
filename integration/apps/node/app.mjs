// A counter behind Einlass, at level L3 of the contract: Node.js 20 with node:http and a journal file, no packages.
//
//     node integration/apps/node/app.mjs --listen 127.0.0.1:3000 --db counter.journal
//     curl -H 'Webhook-Gate-Source: me' -H 'Webhook-Gate-Event: 1' -d '{"amount":5}' http://127.0.0.1:3000/hook
//     curl http://127.0.0.1:3000/counter
//
// Node 20 has no database of its own, so the file is one: a line per event, in JSON, that holds the effect (amount) and
// the event's receipt, is appended by a single write and flushed to disk. That is the transaction: a line is whole and
// both happened, or it is not and neither did. At the start a torn last line is cut off, and the rest is the state.
// With a database, effect and row go into one transaction of it instead. One process may have the file open.
//
// Whoever reaches /webhook-outcome can ask for any event, so the site in front passes on only /hook:
// `reverse_proxy /hook 127.0.0.1:3000`. The last lines of this file are for the tests; leave them out.

import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';

const MAX_BODY = 64 * 1024;

const { values: options } = parseArgs({
  options: {
    listen: { type: 'string', default: '127.0.0.1:3000' }, // only the gate should reach it
    db: { type: 'string', default: 'counter.journal' },
  },
});

const receipts = new Map(); // by event: what became of it; kept at least as long as the gate keeps its receipts
let total = 0;
const journal = open(options.db);

// open reads the journal, and appends to it from then on.
function open(file) {
  const fd = fs.openSync(file, 'a+');
  const data = fs.readFileSync(fd);
  const whole = data.lastIndexOf('\n') + 1;
  for (const line of data.subarray(0, whole).toString().split('\n').slice(0, -1)) apply(JSON.parse(line));
  fs.ftruncateSync(fd, whole);
  fs.fsyncSync(fd); // the process before may have died between write and flush
  const directory = fs.openSync(path.dirname(path.resolve(file)), 'r');
  fs.fsyncSync(directory); // the file's name, too
  fs.closeSync(directory);
  return fd;
}

function apply({ key, amount, receipt }) {
  receipts.set(key, receipt);
  total += amount;
}

// commit appends an event's line. If that fails nobody knows what is on disk, so the process ends; the next start looks.
let commit = function (line) {
  try {
    if (fs.writeSync(journal, line) !== line.length) throw new Error('the journal took only a part of a line');
    fs.fsyncSync(journal);
  } catch (error) {
    console.error(error);
    process.exit(1);
  }
};

// once does an event's work and keeps its receipt. A known event only gets its receipt. There is no `await` from the
// look at the map to the end of the flush: that is what keeps two requests of one event apart.
function once(key, body) {
  if (!receipts.has(key)) {
    const entry = { key, ...work(body) };
    commit(Buffer.from(JSON.stringify(entry) + '\n'));
    apply(entry);
  }
  return receipts.get(key);
}

// What became of an event: the line, the callback and the answer to the outcome question are all this.
const receipt = (outcome, status, content_type, body) => ({ outcome, status, content_type, body });

// work adds the amount, or refuses the event for good.
function work(body) {
  const refused = (status, why) => ({ amount: 0, receipt: receipt('rejected', status, 'text/plain', why) });
  if (!body) return refused(413, 'the event is too large');
  let amount;
  try {
    amount = JSON.parse(body).amount;
  } catch {}
  if (!Number.isInteger(amount) || amount < 1 || amount > 1e6) return refused(422, 'amount must be a number from 1 to 1000000');
  return { amount, receipt: receipt('committed', 200, 'application/json', JSON.stringify({ total: total + amount })) };
}

// confirm tells the gate what became of the event, so that it knows also if the answer gets lost. Tries a few times.
let confirm = async function (url, token, result) {
  let status;
  for (const pause of [0, 100, 500, 2000]) {
    await sleep(pause);
    try {
      const headers = { 'Content-Type': 'application/json', 'Webhook-Gate-Token': token };
      const request = { method: 'POST', headers, body: JSON.stringify(result), redirect: 'error', signal: AbortSignal.timeout(2000) };
      const answer = await fetch(url, request);
      const state = await answer.text();
      status = answer.status;
      if (status === 200 && state.includes('"state"')) return; // another 200 is not the gate's: the URL leads elsewhere
    } catch (error) {
      status = error.message;
    }
    if (status < 500) break; // 409 is for a person: another receipt was stored before, or the attempt was closed for good
  }
  console.error('the gate could not be told what became of an event:', status);
};

// One of the gate's headers; what is not ASCII in an event id is UTF-8, which Node reads as Latin-1.
const gate = (request, name) => Buffer.from(request.headers['webhook-gate-' + name] ?? '', 'latin1').toString();

const keyOf = (source, event) => JSON.stringify([source, event]);

// hook takes one attempt. If the body breaks off this throws: it is not the event then, and decides nothing.
async function hook(request, response) {
  const parts = [];
  let length = 0;
  for await (const part of request) {
    length += part.length;
    if (length <= MAX_BODY) parts.push(part);
  }
  const [source, event] = [gate(request, 'source'), gate(request, 'event')];
  if (!source || !event) return say(response, 400, 'this did not come through the gate');
  const result = once(keyOf(source, event), length > MAX_BODY ? null : Buffer.concat(parts));
  if (gate(request, 'confirm')) {
    // Never in the way: the answer waits a second for it at most.
    await Promise.race([confirm(gate(request, 'confirm'), gate(request, 'token'), result), sleep(1000)]);
  }
  answer(response, result);
}

// outcome answers the outcome question. 404 is "I know nothing of it": mind that a wrong path says the same. An app whose
// work awaits something answers 202 meanwhile; here no question is read while an event is half done.
function outcome(query, response) {
  const key = keyOf(query.get('source'), query.get('event'));
  if (receipts.has(key)) return say(response, 200, JSON.stringify(receipts.get(key)), 'application/json');
  say(response, 404);
}

let answer = function (response, { outcome, status, content_type, body }) {
  response.setHeader('Webhook-Gate-Outcome', outcome);
  say(response, status, body, content_type);
};

function say(response, status, body = '', type = 'text/plain') {
  response.writeHead(status, { 'Content-Type': type, 'Content-Length': Buffer.byteLength(body) }).end(body);
}

const server = http.createServer(async (request, response) => {
  try {
    const url = new URL(request.url, 'http://app');
    if (request.method === 'POST' && url.pathname === '/hook') await hook(request, response);
    else if (request.method === 'GET' && url.pathname === '/webhook-outcome') outcome(url.searchParams, response);
    else if (request.method === 'GET' && url.pathname === '/counter') say(response, 200, String(total));
    else say(response, 404);
  } catch (error) {
    console.error(error.message);
    response.destroy(); // says nothing; `aborted` would be a claim
  }
});
server.requestTimeout = 10_000; // for a request to arrive
server.keepAliveTimeout = 300_000; // longer than Caddy keeps idle connections (2 minutes), so that no attempt meets a closing one

const [host, port] = options.listen.split(':');
server.listen(Number(port), host, () => console.log(`listening on ${host}:${server.address().port}`));

// For the tests only: CRASH_AT=before_commit|after_commit|after_callback|before_answer ends the process there.
if (process.env.CRASH_AT) {
  const crash = (point) => process.env.CRASH_AT === point && process.kill(process.pid, 'SIGKILL');
  const [commits, confirms, answers] = [commit, confirm, answer];
  commit = (line) => {
    if (process.env.CRASH_AT === 'before_commit') fs.writeSync(journal, line.subarray(0, line.length / 2));
    crash('before_commit');
    commits(line);
    crash('after_commit');
  };
  confirm = async (...args) => {
    await confirms(...args);
    crash('after_callback');
  };
  answer = (...args) => {
    crash('before_answer');
    answers(...args);
  };
}
