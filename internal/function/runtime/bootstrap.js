// The program of a function's process. It waits for its first message on standard input, which has
// the environment and the module, and imports the module, which it serves on the server's socket.
//
// No wall is here: what a function changes in its own process is its own affair.

import { compile, restore } from "./codecache.js";
import { configure, handle, proxy } from "./network.js";

const { connect: dial, listen, serve } = Deno;
const encoder = new TextEncoder();
const decoder = new TextDecoder();

const folder = "/tmp/function";
const socket = "/run/socket";

let handler; // (request, info) => response
let onError; // (error) => response
const background = new Set(); // promises of EdgeRuntime.waitUntil

// receive reads the first message: a line of JSON, then the module and its code cache.
async function receive() {
  const text = new Uint8Array(await new Response(Deno.stdin.readable).arrayBuffer());
  const end = text.indexOf(10);
  if (end < 0) Deno.exit(0); // the process is not needed

  const settings = JSON.parse(decoder.decode(text.subarray(0, end)));
  const rest = text.subarray(end + 1);
  return [settings, rest.subarray(0, settings.size), rest.subarray(settings.size)];
}

// report sends the server a message about this process.
async function report(event, body = new Uint8Array()) {
  const head = `POST /${event} HTTP/1.1\r\nHost: socle\r\nContent-Length: ${body.length}\r\n\r\n`;
  const conn = await dial(proxy);
  await conn.write(encoder.encode(head));
  for (let sent = 0; sent < body.length;) sent += await conn.write(body.subarray(sent));
  await conn.read(new Uint8Array(64));
  conn.close();
}

function describe(error) {
  return error instanceof Error ? error.stack ?? String(error) : Deno.inspect(error);
}

// Ways by which a module names its handler: Deno.serve, a default export, and the listener of old
// releases of std/http.

Deno.serve = (...args) => {
  const [options, given] = typeof args[0] === "function" ? [{}, args[0]] : [args[0] ?? {}, args[1] ?? args[0]?.handler];
  if (typeof given !== "function") throw new TypeError("Deno.serve needs a handler");
  handler = given;
  onError = options.onError;

  const { promise: finished, resolve } = Promise.withResolvers();
  const addr = { transport: "tcp", hostname: "0.0.0.0", port: options.port ?? 8000 };
  options.onListen?.(addr);
  options.signal?.addEventListener("abort", () => resolve());
  return {
    addr, finished, ref() {}, unref() {}, shutdown: async () => resolve(),
    [Symbol.asyncDispose]: async () => resolve(),
  };
};

Deno.listen = (options) => {
  if ((options.transport ?? "tcp") !== "tcp") return listen(options);

  const waiting = []; // accept calls
  const arrived = []; // connections
  const addr = { transport: "tcp", hostname: options.hostname ?? "0.0.0.0", port: options.port };
  handler = (request, info) => new Promise((resolve, reject) => {
    const conn = {
      localAddr: addr, remoteAddr: info.remoteAddr, close() {},
      event: { request, respondWith: async (response) => { await Promise.resolve(response).then(resolve, reject); } },
    };
    const accept = waiting.shift();
    if (accept) accept(conn);
    else arrived.push(conn);
  });

  return {
    addr, close() {}, ref() {}, unref() {},
    accept: () => arrived.length > 0 ? Promise.resolve(arrived.shift()) : new Promise((r) => waiting.push(r)),
    async *[Symbol.asyncIterator]() { while (true) yield await this.accept(); },
  };
};

Deno.serveHttp = (conn) => {
  let event = conn.event;
  return {
    close() {},
    async nextRequest() {
      const next = event ?? null;
      event = null;
      return next;
    },
    async *[Symbol.asyncIterator]() { for (let e; (e = await this.nextRequest());) yield e; },
  };
};

function handlerOf(exported) {
  if (typeof exported?.fetch === "function") return (request, info) => exported.fetch(request, info);
  return typeof exported === "function" ? exported : undefined;
}

globalThis.EdgeRuntime = {
  waitUntil(promise) {
    const settled = Promise.resolve(promise).catch((error) => console.error(describe(error)))
      .finally(() => background.delete(settled));
    background.add(settled);
    return promise;
  },
};

addEventListener("unhandledrejection", (event) => {
  event.preventDefault();
  console.error("Uncaught (in promise) " + describe(event.reason));
});
addEventListener("error", (event) => {
  event.preventDefault();
  console.error("Uncaught " + describe(event.error));
});

// end tells the function why its process ends, and returns when its background work is done.
async function end(reason) {
  dispatchEvent(new CustomEvent("beforeunload", { detail: { reason } }));
  while (background.size > 0) await Promise.allSettled(background);
  return new Response(null, { status: 204 });
}

async function answer(request) {
  const path = request.url.slice(request.url.indexOf("/", "http+unix://".length));
  if (path.startsWith("/.socle/end")) return await end(request.headers.get("reason"));

  // The address that the caller used. The object stays the same one: WebSockets need it.
  const url = request.headers.get("x-forwarded-proto") + "://" + request.headers.get("host") + path;
  Object.defineProperty(request, "url", { value: url, configurable: true });
  const clone = request.clone;
  request.clone = () => Object.defineProperty(clone.call(request), "url", { value: url, configurable: true });

  const client = request.headers.get("x-forwarded-for") ?? "";
  const info = { remoteAddr: { transport: "tcp", hostname: client, port: 0 }, completed: new Promise(() => {}) };
  try {
    const response = await handle(request, () => handler(request, info));
    if (!(response instanceof Response)) throw new TypeError("The handler returned no Response");
    return response;
  } catch (error) {
    if (onError) return await onError(error);

    console.error(describe(error));
    return new Response("Internal Server Error", {
      status: 500, headers: { "sb-error-code": "WORKER_ERROR", "content-type": "text/plain;charset=UTF-8" },
    });
  }
}

// listenAt serves requests at a path and returns when it does.
async function listenAt(path) {
  const { promise, resolve } = Promise.withResolvers();
  const server = serve({ path, onListen: resolve, onError: (error) => {
    console.error(describe(error));
    return new Response("Internal Server Error", { status: 500, headers: { "sb-error-code": "WORKER_ERROR" } });
  } }, answer);
  await promise;
  return server;
}

// warmUp answers a request of its own, so that the first one of a client does not wait until the
// parts of Deno that serve it are loaded. A server left open would keep a module that waits for
// nothing from ending.
async function warmUp() {
  const path = "/run/warm";
  const server = await listenAt(path);
  handler = () => new Response("warm");

  const conn = await dial({ transport: "unix", path });
  await conn.write(encoder.encode("GET / HTTP/1.1\r\nHost: socle\r\nConnection: close\r\n\r\n"));
  await new Response(conn.readable).text();

  handler = undefined;
  await server.shutdown();
}

await warmUp();

const [settings, module, codeCache] = await receive();
for (const [name, value] of Object.entries(settings.env ?? {})) Deno.env.set(name, value);
configure(settings.origins ?? {});

try {
  await Deno.mkdir(folder, { recursive: true });
  await Deno.writeFile(`${folder}/index.js`, module);
  if (settings.compile) {
    await report("compiled", await compile(folder, "index.js"));
    Deno.exit(0);
  }
  restore(`file://${folder}/index.js`, codeCache);

  const exports = await import(`file://${folder}/index.js`);
  handler ??= handlerOf(exports.default);
  if (!handler) throw new Error("The function neither calls Deno.serve nor exports a default handler");
} catch (error) {
  await report("failed", encoder.encode(describe(error).slice(0, 10000)));
  Deno.exit(1);
}

await listenAt(socket);
await report("listening");
