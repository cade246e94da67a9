import { corsHeaders } from "../_shared/cors.ts";

Deno.serve(async (request: Request) => {
  if (request.method === "OPTIONS") return new Response("ok", { headers: corsHeaders });

  const { query } = await request.json();
  const words: string[] = query.split(" ");
  const encoder = new TextEncoder();
  const body = new ReadableStream({
    async pull(controller) {
      const word = words.shift();
      if (word === undefined) {
        controller.enqueue(encoder.encode("data: [DONE]\n\n"));
        controller.close();
        return;
      }
      await new Promise((resolve) => setTimeout(resolve, 1));
      controller.enqueue(encoder.encode(`data: ${JSON.stringify({ delta: word })}\n\n`));
    },
  });

  return new Response(body, { headers: { ...corsHeaders, "Content-Type": "text/event-stream" } });
});
