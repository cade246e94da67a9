import { z } from "zod";

const Signup = z.object({ email: z.string().email(), age: z.number().int().min(18) });

export default {
  async fetch(request: Request): Promise<Response> {
    const parsed = Signup.safeParse(await request.json());
    return parsed.success
      ? Response.json(parsed.data)
      : Response.json(parsed.error.flatten().fieldErrors, { status: 422 });
  },
};
