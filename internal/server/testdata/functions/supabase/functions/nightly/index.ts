import { createClient } from "@supabase/supabase-js";

Deno.serve(() => {
  const client = createClient(Deno.env.get("SUPABASE_URL")!, Deno.env.get("SUPABASE_SERVICE_ROLE_KEY")!);
  EdgeRuntime.waitUntil(client.from("todos").delete().eq("title", "old").then(({ error }) => {
    console.log("cleaned", error?.message ?? "without errors");
  }));

  return new Response(null, { status: 202 });
});
