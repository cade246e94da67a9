// Package enduser owns the users of a project's own application: their rows in schema auth of the
// project's database, sign-up, log-in, sessions, one-time tokens, second factors and the jobs of
// messages to them.
//
// It follows Supabase Auth, whose clients use package authapi. Settings and what follows from them
// alone are in package rules, the way of a message to its recipient in package message. Rules that
// accounts of the platform have too are in packages password, token, ratelimit and mail. Every
// statement on schema auth runs on the project's auth login, since triggers of the project run with
// it.
//
// # Users
//
// Anybody can sign up with an address or a number. The request is a row of auth.sign_ups until a
// link or a code confirms it; the first confirmation takes the account over and keeps nothing of
// other requests.
//
//	request ──► unconfirmed user ──first link, code or provider──► user ──► banned, deleted
//	                                                                ▲
//	anonymous user ────────────address, number or identity──────────┘
//
// # Sessions
//
// A session is a row of auth.sessions. Access tokens are signed after its commit and end by their
// time; a refresh token is a MAC of session and generation, and each refresh increments the
// generation.
//
//	         log-in, code, provider, passkey
//	                      │
//	                      ▼
//	refresh ┌────► session, level aal1 ──factor or recovery code──► level aal2 ◄────┐ refresh
//	        └───────┘     │     ▲                                     │  │  └───────┘
//	                      │     └───────────factor removed────────────┘  │
//	                      ▼                                              ▼
//	  ended: log-out, new password, age, inactivity, refused refresh, deletion of the user, or
//	  a newer session beyond the limit; of aal1 also the first factor, verified in another session
package enduser
