import { createClient } from "@supabase/supabase-js";
import { corsHeaders } from "../_shared/cors.ts";

Deno.serve(async (request) => {
  const client = createClient(Deno.env.get("SUPABASE_URL") ?? "", Deno.env.get("SUPABASE_ANON_KEY") ?? "", {
    global: { headers: { Authorization: request.headers.get("Authorization")! } },
  });

  const { data, error } = await client.from("todos").select("title").order("title");
  return Response.json({ titles: data?.map((todo) => todo.title), error: error?.message }, { headers: corsHeaders });
});
