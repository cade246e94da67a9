// Package oauth is the OAuth 2.1 server of a project: other applications ask its end users for
// access. It owns the clients, their authorization requests, the codes, the grants of users, ID
// tokens and the metadata of OpenID Connect.
//
// Users, sessions and access tokens belong to package enduser, HTTP to package authapi, the consent
// page to package web. The contract is that of Supabase Auth, without PKCE's method plain.
//
// # An authorization
//
//	            authorize              approve               exchange
//	(request) ────────────▶ pending ────────────▶ approved ────────────▶ spent ──▶ session
//	                           │                     │                     │          ▲
//	                           │ deny                │ wrong client,       │ second   │ ends it
//	                           ▼                     │ redirect, verifier  │ use      │
//	                         denied                  └───▶ spent           └──────────┘
//
// A request is pending for ten minutes, and its code is valid for five. The code is a MAC of the
// row's id and stored nowhere. Any use of a code by an authenticated client spends it.
//
// # A grant
//
// An approval is remembered as the user's consent to the scopes, so the client is not asked for
// twice. Its revocation ends the sessions of the client, as does the deletion of the client.
//
// # A session of a client
//
// It has the level and methods of the session in which the user has approved, and the claim
// client_id in its access tokens. Its refresh tokens have a key of their own and are valid once: a
// second use ends the session. It may read its user and log itself out, and changes nothing about
// users.
package oauth
