import Stripe from "npm:stripe@17.7.0";

const stripe = new Stripe(Deno.env.get("STRIPE_API_KEY")!, { httpClient: Stripe.createFetchHttpClient() });
const crypto = Stripe.createSubtleCryptoProvider();

Deno.serve(async (request) => {
  const signature = request.headers.get("Stripe-Signature");
  try {
    const event = await stripe.webhooks.constructEventAsync(
      await request.text(), signature!, Deno.env.get("STRIPE_WEBHOOK_SECRET")!, undefined, crypto);
    return Response.json({ received: event.type });
  } catch (error) {
    return new Response((error as Error).message, { status: 400 });
  }
});
