// Ways out of a function's process. Only the server's proxy reaches other hosts, so whatever opens
// a connection does so through it: fetch by the environment, everything else by what is here.

import { AsyncLocalStorage } from "node:async_hooks";
import { Socket } from "node:net";

const { connect: dial, listen, startTls } = Deno;
const { fetch: send, WebSocket: PlainWebSocket } = globalThis;
const encoder = new TextEncoder();

export const proxy = { hostname: "127.0.0.1", port: 3128 };
const depthHeader = "x-socle-depth";

// The server's public origin, and the one by which the proxy leads to it without a detour.
const own = { public: "", inside: "" };
const depths = new AsyncLocalStorage();

// configure names the origins of the server.
export function configure(origins) {
  Object.assign(own, origins);
}

// handle runs a handler, whose calls of the server count as made by this request.
export function handle(request, run) {
  return depths.run(request.headers.get(depthHeader) ?? "1", run);
}

function isOwn(url) {
  return own.public !== "" && (url.startsWith(own.public + "/") || url === own.public);
}

globalThis.fetch = (input, init) => {
  const url = input instanceof Request ? input.url : String(input);
  if (!isOwn(url)) return send(input, init);

  // The second argument of a copy of a Request is its source, body and signal included.
  const inside = own.inside + url.slice(own.public.length);
  const request = new Request(inside, input instanceof Request ? new Request(input, init) : init);
  request.headers.set(depthHeader, depths.getStore() ?? "1");
  return send(request).then((response) => Object.defineProperty(response, "url", { value: url }));
};

const httpClient = Deno.createHttpClient({ proxy: { url: `http://${proxy.hostname}:${proxy.port}` } });

globalThis.WebSocket = class WebSocket extends PlainWebSocket {
  constructor(url, options = {}) {
    const given = typeof options === "string" || Array.isArray(options) ? { protocols: options } : options;
    const http = String(url).replace(/^ws/, "http");
    super(isOwn(http) ? own.inside + http.slice(own.public.length) : url, { client: httpClient, ...given });
  }
};

function isLocal(hostname) {
  return ["127.0.0.1", "localhost", "::1"].includes(hostname);
}

Deno.connect = async (options) => {
  const { hostname = "127.0.0.1", port, transport = "tcp" } = options;
  if (transport !== "tcp" || isLocal(hostname)) return await dial(options);

  const conn = await dial(proxy);
  const target = hostname.includes(":") ? `[${hostname}]:${port}` : `${hostname}:${port}`;
  await conn.write(encoder.encode(`CONNECT ${target} HTTP/1.1\r\nHost: ${target}\r\n\r\n`));

  let head = "";
  const byte = new Uint8Array(1); // not one more than the answer: the rest is the other host's
  while (!head.endsWith("\r\n\r\n") && head.length < 4096) {
    if (await conn.read(byte) === null) break;
    head += String.fromCharCode(byte[0]);
  }
  if (!head.startsWith("HTTP/1.1 200")) {
    conn.close();
    throw new Deno.errors.ConnectionRefused(`connect ${target}: ${head.split("\r\n")[0].slice(9) || "no answer"}`);
  }
  return conn;
};

Deno.connectTls = async (options) =>
  await startTls(await Deno.connect(options), {
    hostname: options.hostname, caCerts: options.caCerts, alpnProtocols: options.alpnProtocols,
  });

// relay returns a local port whose first connection leads to another host.
async function relay(hostname, port) {
  const far = await Deno.connect({ hostname, port });
  const listener = listen({ hostname: "127.0.0.1", port: 0 });
  listener.accept().then(async (near) => {
    listener.close();
    await Promise.allSettled([near.readable.pipeTo(far.writable), far.readable.pipeTo(near.writable)]);
  });
  return listener.addr.port;
}

// Sockets of node:net, which drivers of databases use, connect to a relay.
const connectSocket = Socket.prototype.connect;
Socket.prototype.connect = function (...args) {
  const list = Array.isArray(args[0]) ? args[0] : args; // of net.connect, already normalized
  const options = typeof list[0] === "object" ? list[0] : { port: list[0], host: list[1] };
  const callback = list.find((argument) => typeof argument === "function");
  const host = typeof options.host === "string" && options.host !== "" ? options.host : "localhost";
  if (options.path || isLocal(host) || isNaN(options.port)) return connectSocket.apply(this, args);

  if (callback) this.once("connect", callback);
  this.connecting = true;
  relay(host, Number(options.port)).then((port) => {
    if (!this.destroyed) {
      connectSocket.call(this, { ...options, host: proxy.hostname, port, servername: options.servername ?? host });
    }
  }, (error) => this.destroy(Object.assign(error, { code: "ECONNREFUSED" })));
  return this;
};
