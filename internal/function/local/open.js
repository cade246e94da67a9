// The program of a function that runs without walls. Deno serves at the address of
// DENO_SERVE_ADDRESS.

globalThis.EdgeRuntime = {
  waitUntil(promise) {
    Promise.resolve(promise).catch((error) => console.error(error));
    return promise;
  },
};

const serve = Deno.serve;
let serves = false;
Deno.serve = (...args) => {
  serves = true;
  const options = typeof args[0] === "function" ? { handler: args[0] } : { ...args[0], handler: args[1] ?? args[0].handler };
  delete options.port;
  return serve({ ...options, onListen() {} }, options.handler);
};

const exported = (await import("./function/index.js")).default;
const handler = typeof exported?.fetch === "function" ? (request, info) => exported.fetch(request, info) : exported;
if (!serves && typeof handler === "function") Deno.serve(handler);
else if (!serves) throw new Error("The function neither calls Deno.serve nor exports a default handler");
