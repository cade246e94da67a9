import { createClient } from "@supabase/supabase-js";

Deno.serve(async (request) => {
  const form = await request.formData();
  const file = form.get("file");
  if (!(file instanceof File)) return new Response("no file", { status: 400 });

  const client = createClient(Deno.env.get("SUPABASE_URL")!, Deno.env.get("SUPABASE_SERVICE_ROLE_KEY")!);
  const { data, error } = await client.storage.from("uploads").upload(file.name, file, { contentType: file.type });
  return Response.json({ path: data?.path, error: error?.message });
});
