import { Webhook } from "npm:standardwebhooks@1.0.0";

const template = await Deno.readTextFile(new URL("./mail.html", import.meta.url));

Deno.serve(async (request) => {
  const hook = new Webhook(Deno.env.get("SEND_EMAIL_HOOK_SECRET")!.replace("v1,whsec_", ""));
  try {
    const { user, email_data } = hook.verify(await request.text(), Object.fromEntries(request.headers)) as {
      user: { email: string };
      email_data: { token: string };
    };
    console.log("to", user.email, template.trim().replace("TOKEN", email_data.token));
    return Response.json({});
  } catch (error) {
    return Response.json({ error: { http_code: 401, message: (error as Error).message } }, { status: 401 });
  }
});
