Deno.serve((request) => {
  if (request.headers.get("upgrade") !== "websocket") return new Response("a WebSocket, please", { status: 426 });

  const { socket, response } = Deno.upgradeWebSocket(request);
  socket.onopen = () => socket.send("welcome");
  socket.onmessage = (event) => socket.send(`echo ${event.data}`);
  return response;
});
