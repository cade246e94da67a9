package repository

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// unusedKey is a key, or all keys below it, without a counterpart in a project.
type unusedKey struct {
	path   string   // * stands for any name
	reason string   // "": it concerns Supabase's own tools only, or a project always has it
	inert  []string // values that ask for nothing, as Go prints them
}

// unusedKeys are in the order in which they are looked up.
var unusedKeys = []unusedKey{
	{"api.extra_search_path", "is not used: the search path is public, extensions", []string{"[public extensions]",
		"[public]", "[extensions]", "[]"}},
	{"api", "", nil},
	{"db.settings", "is not used: settings of PostgreSQL are those of the install", nil},
	{"db", "", nil},
	{"remotes", "is not used: push a branch to a project of its own, with --project", nil},
	{"storage.analytics.enabled", "is not available", []string{"false"}},
	{"storage.vector.enabled", "is not available", []string{"false"}},
	{"storage.buckets", "is not known, and not used", nil},
	{"storage", "", nil},

	{"auth.enabled", "", nil},
	{"auth.email.enable_signup", "is not used: sign-up by address can't be closed alone; auth.enable_signup closes all",
		[]string{"true"}},
	{"auth.email.double_confirm_changes", "is not used: a change of address is always confirmed at both",
		[]string{"true"}},
	{"auth.email.secure_password_change", "", nil},
	{"auth.email.otp_length", "is not used: codes have 6 digits", []string{"6"}},
	{"auth.email.notification.*.enabled", "is not available", []string{"false"}},
	{"auth.email.notification", "", nil},
	{"auth.email.smtp", "", nil},
	{"auth.email.template", "", nil},
	{"auth.enable_manual_linking", "", nil},
	{"auth.enable_refresh_token_rotation", "is not used: refresh tokens are always rotated", []string{"true"}},
	{"auth.refresh_token_reuse_interval", "is not used: a token can be used again for 10 seconds", []string{"10"}},
	{"auth.rate_limit.email_sent", "", nil},
	{"auth.rate_limit.sms_sent", "", nil},
	{"auth.rate_limit.token_refresh", "is not used: refreshes have no limit of their own", []string{"150"}},
	{"auth.rate_limit.web3", "", nil},
	{"auth.mfa.max_enrolled_factors", "is not used: a user has at most 10 factors", []string{"10"}},
	{"auth.mfa.phone.otp_length", "is not used: codes have 6 digits", []string{"6"}},
	{"auth.mfa", "", nil},
	{"auth.sms", "", nil},
	{"auth.hook", "", nil},
	{"auth.external.*.email_optional", "is not used: an account needs an address", []string{"false"}},
	{"auth.external", "", nil},
	{"auth.captcha", "", nil},
	{"auth.oauth_server", "", nil},
	{"auth.web3.*.enabled", "is not available", []string{"false"}},
	{"auth.third_party.*.enabled", "is not used: accept the provider's tokens by socle jwt-keys create", []string{"false"}},
	{"auth.third_party", "", nil},
	{"auth.signing_keys_path", "is not used: a project has keys of its own", nil},
	{"auth.jwt_secret", "is not used: a project has a secret of its own", nil},
	{"auth.jwt_issuer", "is not used: a project is its own issuer", nil},
	{"auth.anon_key", "is not used: a project has keys of its own", nil},
	{"auth.service_role_key", "is not used: a project has keys of its own", nil},
	{"auth.publishable_key", "is not used: a project has keys of its own", nil},
	{"auth.secret_key", "is not used: a project has keys of its own", nil},

	{"edge_runtime", "", nil},
	{"realtime", "", nil},
	{"studio", "", nil},
	{"inbucket", "", nil},
	{"local_smtp", "", nil},
	{"analytics", "", nil},
	{"experimental", "", nil},
}

// noteRest notes the keys that nothing has read.
func (d *document) noteRest() { d.noteRestOf("", d.root) }

func (d *document) noteRestOf(path string, value any) {
	if table, ok := value.(map[string]any); ok {
		for _, name := range slices.Sorted(maps.Keys(table)) {
			d.noteRestOf(strings.TrimPrefix(path+"."+name, "."), table[name])
		}
		return
	}

	if d.read[path] {
		return
	}

	i := slices.IndexFunc(unusedKeys, func(k unusedKey) bool { return matchKey(k.path, path) })
	switch {
	case i < 0:
		d.note(path, "is not known, and not used")
	case unusedKeys[i].reason != "" && !slices.Contains(unusedKeys[i].inert, fmt.Sprint(value)):
		d.note(path, "%s", unusedKeys[i].reason)
	}
}

// matchKey reports whether a path matches a pattern, or lies below it.
func matchKey(pattern, path string) bool {
	want, got := strings.Split(pattern, "."), strings.Split(path, ".")
	if len(got) < len(want) {
		return false
	}

	for i, name := range want {
		if name != "*" && name != got[i] {
			return false
		}
	}

	return true
}
