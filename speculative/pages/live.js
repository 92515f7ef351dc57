// The worker of live.html: hands a request to Python, and Python's messages to the page. A new request ends the last one.
// Python is the process that serves the page (speculative/cli/live.py), or Pyodide with the library from live.zip.
const address = new URL(self.location).searchParams;
const PYODIDE = address.has("local") ? new URL("pyodide/", self.location).href : "https://cdn.jsdelivr.net/pyodide/v314.0.7/full/";
const PYTHON = `
import json, gpt2np
from speculative import AutoregressiveSampler, ModelDrafter, Sampling, SpeculativeSampler
from speculative.pages import live
(target, tokenizer), (draft_model, _) = gpt2np.load("tiny-target"), gpt2np.load("tiny-draft")

def make(prompt, K, temperature, n_tokens, seed):
    tokens, sampling = tokenizer.encode(prompt) or [tokenizer.end_of_text], Sampling(temperature)
    sampler = AutoregressiveSampler(target, sampling=sampling)
    if K:
        sampler = SpeculativeSampler(target, ModelDrafter(draft_model), K=K, sampling=sampling)
    about = {"K": K, "temperature": temperature, "seed": seed, "verifier": "rejection", "exactness": "exact",
             "target": {"name": "tiny-target"}, "draft": {"name": "tiny-draft"}}
    return sampler, sampler.rounds(tokens, n_tokens, seed), tokens, tokenizer.decode, about

lambda say, request: live.answer(lambda message: say(json.dumps(message)), make, json.loads(request))`;

async function load() {
  if (typeof WebAssembly === "undefined") throw new Error("this browser has no WebAssembly, which Python needs");
  const { loadPyodide } = await import(`${PYODIDE}pyodide.mjs`);
  const [python, library] = await Promise.all([
    loadPyodide({ indexURL: PYODIDE, packages: ["numpy", "regex"] }),
    fetch("live.zip").then(answer => answer.arrayBuffer()),
  ]);
  python.unpackArchive(library, "zip");
  return python.runPython(PYTHON);
}

let loading;
async function inBrowser(request, say, signal) {
  loading ??= load();
  const answer = await loading.catch(error => {
    loading = undefined;
    throw new Error(`Python could not be loaded (${error.message}). Without a network, "python main.py explore" shows this page.`);
  });
  for (const _ of answer(words => say(JSON.parse(words)), JSON.stringify(request))) {
    await new Promise(resolve => setTimeout(resolve));  // lets a new request in
    if (signal.aborted) return;
  }
}

async function onServer(request, say, signal) {
  const answer = await fetch("answer", { method: "POST", body: JSON.stringify(request), signal });
  if (!answer.ok) throw new Error(await answer.text());
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  for (let rest = "", part; !(part = await reader.read()).done;) {
    const lines = (rest + part.value).split("\n");
    rest = lines.pop();
    lines.forEach(line => say(JSON.parse(line)));
  }
}

let current = new AbortController();
self.onmessage = async ({ data: { run, request } }) => {
  current.abort();
  const { signal } = current = new AbortController(), say = message => self.postMessage({ ...message, run });
  try {
    if (request) await (address.has("served") ? onServer : inBrowser)(request, say, signal);
  } catch (error) {
    if (!signal.aborted) say({ kind: "error", words: error.message.split("\n").filter(Boolean).at(-1) });
  }
};
