package repository

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// write writes the files of a repository and returns its folder.
func write(t *testing.T, files map[string]string) string {
	t.Helper()

	root := filepath.Join(t.TempDir(), "book shop")
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}

	return root
}

// environment returns a lookup of variables.
func environment(variables map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		text, ok := variables[name]
		return text, ok
	}
}

// open opens a repository with a configuration and further files.
func open(t *testing.T, config string, files map[string]string) (*Repository, error) {
	t.Helper()

	all := map[string]string{ConfigFile: config}
	for name, text := range files {
		all[name] = text
	}

	return Open(write(t, all), environment(map[string]string{"FROM_ENV": "value", "YES": "true", "EMPTY": ""}))
}

// describe returns settings as lines.
func describe(settings []Setting) []string {
	var all []string
	for _, s := range settings {
		all = append(all, fmt.Sprintf("%d %s=%v", s.Line, strings.Join(s.Member, "."), s.Value))
	}

	return all
}

func texts(remarks []Remark) []string {
	var all []string
	for _, r := range remarks {
		all = append(all, r.String())
	}

	return all
}

// TestSettings maps configurations to settings of end users, with their lines.
func TestSettings(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct {
		config  string
		files   map[string]string
		want    []string
		secrets []string
		notes   []string
	}{
		"empty": {},
		"byte order mark and Windows line ends": {config: "\ufeff[auth]\r\n\r\nsite_url = \"https://a.example\"\r\n",
			want: []string{"3 site_url=https://a.example"}},
		"auth": {config: "[auth]\nsite_url = \"https://a.example\"\nadditional_redirect_urls = [\"https://*.example/**\"]\n" +
			"jwt_expiry = 900\nenable_signup = false\nenable_anonymous_sign_ins = true\nminimum_password_length = 10\n" +
			"password_requirements = \"letters_digits\"\n[auth.sessions]\ntimebox = \"24h\"\ninactivity_timeout = \"8h\"\n",
			want: []string{"2 site_url=https://a.example", "3 redirect_urls=[https://*.example/**]",
				"4 access_token_seconds=900", "5 sign_up=false", "6 anonymous_sign_in=true", "7 password_min_length=10",
				"8 password_required_characters=[letter digit]", "10 session_seconds=86400",
				"11 session_inactivity_seconds=28800"}},
		"inline table": {config: "auth = { site_url = \"https://a.example\", sessions = { timebox = \"1h\" } }",
			want: []string{"1 site_url=https://a.example", "1 session_seconds=3600"}},
		"dotted keys": {config: "auth.email.enable_confirmations = true\n",
			want: []string{"1 confirm_email=true"}},
		"values of the environment": {config: "[auth]\nsite_url = \"env(FROM_ENV)\"\nenable_signup = \"env(YES)\"\n",
			want: []string{"2 site_url=value", "3 sign_up=true"}},
		"variables in files": {
			config: "[auth.captcha]\nenabled = true\nprovider = \"turnstile\"\nsecret = \"env(CAPTCHA)\"\n",
			files:  map[string]string{".env": "CAPTCHA=b", "supabase/.env": "# local\r\nexport CAPTCHA='a'\r\n"},
			want:   []string{"1 captcha=map[enabled:true provider:turnstile]"}, secrets: []string{"captcha=a"}},
		"mail server": {config: "[auth.email]\nmax_frequency = \"1m30s\"\notp_expiry = 600\n[auth.email.smtp]\n" +
			"host = \"smtp.example.com\"\nport = 465\nuser = \"apikey\"\npass = \"env(FROM_ENV)\"\n" +
			"admin_email = \"shop@example.com\"\nsender_name = \"Shop\"\n[auth.rate_limit]\nemail_sent = 30\n",
			want: []string{"2 mail_interval_seconds=90", "3 code_seconds=600",
				`4 smtp=map[from:"Shop" <shop@example.com> url:smtps://apikey@smtp.example.com:465]`, "12 mails_per_hour=30"},
			secrets: []string{"smtp=value"}},
		"a limit of mails without a mail server": {config: "[auth.rate_limit]\nemail_sent = 2\nsign_in_sign_ups = 20\n",
			want: []string{"3 sign_ins_per_five_minutes=20"}},
		"templates": {config: "[auth.email.template.invite]\nsubject = \"Hi\"\ncontent_path = \"./supabase/templates/invite.html\"\n" +
			"[auth.email.template.recovery]\ncontent_path = \"./templates/recovery.html\"\n" +
			"[auth.email.template.magic_link]\nsubject = \"Hi\"\n",
			files: map[string]string{"supabase/templates/invite.html": "\ufeff<p>\r\n{{ .ConfirmationURL }}</p>",
				"supabase/templates/recovery.html": "{{ if .Token }}x{{ end }}"},
			want: []string{"1 mails.invite=map[html:<p>\n{{ .ConfirmationURL }}</p> subject:Hi]"},
			notes: []string{"supabase/config.toml:4: auth.email.template.recovery is not used, the default text stays: " +
				"variables are {{ .ConfirmationURL }}, {{ .Token }}, {{ .TokenHash }}, {{ .SiteURL }}, {{ .RedirectTo }}, " +
				"{{ .Email }}, {{ .NewEmail }}, {{ .Data }}, not {{ if .Token }}",
				"supabase/config.toml:6: auth.email.template.magic_link is not used: it needs content_path beside its subject"}},
		"phone": {config: "[auth.sms]\nenable_signup = true\nenable_confirmations = true\ntemplate = \"Code {{ .Code }}\"\n" +
			"max_frequency = \"5s\"\n[auth.sms.test_otp]\n4152127777 = \"123456\"\n[auth.sms.twilio]\nenabled = true\n" +
			"account_sid = \"AC1\"\nmessage_service_sid = \"MG2\"\nauth_token = \"env(FROM_ENV)\"\n",
			want: []string{"2 sms.sign_in=true", "3 sms.auto_confirm=false", "5 sms.interval_seconds=5",
				"4 sms.text=Code {{ .Token }}", "6 sms.test_numbers=map[4152127777:123456]", "8 sms.sender=twilio",
				"10 sms.twilio_account_sid=AC1", "11 sms.twilio_messaging_service_sid=MG2"},
			secrets: []string{"sms.twilio=value"}},
		"phone as a factor": {config: "[auth.mfa.phone]\nenroll_enabled = true\n[auth.hook.send_sms]\nenabled = true\n" +
			"uri = \"https://a.example/sms\"\nsecrets = \"v1,whsec_eA==\"\n",
			want:    []string{"2 sms.factors=true", "3 sms.sender=hook", "5 sms.hook_url=https://a.example/sms"},
			secrets: []string{"sms.hook=v1,whsec_eA=="}},
		"hooks": {config: "[auth.hook.custom_access_token]\nenabled = true\nuri = \"pg-functions://postgres/public/claims\"\n" +
			"[auth.hook.send_email]\nenabled = true\nuri = \"http://host.docker.internal/functions/v1/mail\"\n" +
			"[auth.hook.before_user_created]\nenabled = false\nuri = \"env(NOWHERE)\"\n",
			want: []string{"7 hooks.before_user_created=<nil>", "1 hooks.custom_access_token=pg-functions://postgres/public/claims",
				"4 hooks.send_email=functions://mail"}},
		"hooks in functions": {config: "[auth.hook.send_email]\nenabled = true\nuri = \"functions://mail/send\"\nsecrets = \"v1,whsec_eA==\"\n" +
			"[auth.hook.send_sms]\nenabled = true\nuri = \"http://127.0.0.1:54321/functions/v1/sms\"\n" +
			"[auth.hook.custom_access_token]\nenabled = true\nuri = \"http://a.example/functions/v1/claims\"\n" +
			"[auth.mfa.phone]\nenroll_enabled = true\n",
			want: []string{"12 sms.factors=true", "5 sms.sender=hook", "7 sms.hook_url=functions://sms",
				"1 hooks.send_email=functions://mail/send"},
			secrets: []string{"hooks.send_email=v1,whsec_eA=="},
			notes: []string{"supabase/config.toml:10: auth.hook.custom_access_token.uri is not used: a hook is a function in SQL, " +
				"pg-functions://postgres/SCHEMA/NAME, an edge function, functions://NAME, or has an https URL"}},
		"providers": {config: "[auth.external.github]\nenabled = true\nclient_id = \"a,b\"\nsecret = \"env(FROM_ENV)\"\n" +
			"[auth.external.azure]\nenabled = true\nclient_id = \"c\"\nurl = \"https://login.microsoftonline.com/tenant\"\n" +
			"[auth.external.apple]\nenabled = false\nsecret = \"env(NOWHERE)\"\n[auth.external.notion]\nenabled = true\n" +
			"[auth.external.zoom]\nenabled = false\n",
			want: []string{"9 providers.apple.enabled=false",
				"5 providers.azure=map[client_id:c enabled:true url:https://login.microsoftonline.com/tenant/v2.0]",
				"1 providers.github=map[client_id:a enabled:true other_client_ids:[b]]"},
			secrets: []string{"providers.github=value"},
			notes: []string{"supabase/config.toml:12: auth.external.notion is not available; providers are apple, azure, " +
				"discord, facebook, github, gitlab, google, keycloak, linkedin_oidc, slack_oidc, and any of OpenID Connect as a " +
				"custom one: socle auth-settings update --providers"}},
		"passkeys and the OAuth server": {config: "[auth.mfa.web_authn]\nenroll_enabled = true\n[auth.passkey]\nenabled = true\n" +
			"[auth.webauthn]\nrp_id = \"a.example\"\n[auth.oauth_server]\nenabled = true\nauthorization_url_path = \"/consent\"\n",
			want: []string{"2 webauthn.factors=true", "4 webauthn.passkeys=true", "6 webauthn.rp_id=a.example",
				"8 oauth_server.enabled=true", "9 oauth_server.authorization_path=/consent"}},
		"keys without a counterpart": {secrets: []string{"vault.mailer=s3cret"}, config: "projekt = 1\n[auth]\nenable_manual_linking = true\n[auth.email]\nenable_signup = false\n" +
			"otp_length = 8\n[auth.web3.solana]\nenabled = true\n[db.vault]\nkey = \"encrypted:abc\"\nmailer = \"s3cret\"\nnone = \"\"\n[remotes.preview]\nproject_id = \"x\"\n",
			notes: []string{"supabase/config.toml:1: projekt is not known, and not used",
				"supabase/config.toml:5: auth.email.enable_signup is not used: sign-up by address can't be closed alone; " +
					"auth.enable_signup closes all",
				"supabase/config.toml:6: auth.email.otp_length is not used: codes have 6 digits",
				"supabase/config.toml:8: auth.web3.solana.enabled is not available",
				"supabase/config.toml:10: db.vault.key is encrypted: socle vault-secrets create --name key takes the secret itself",
				"supabase/config.toml:14: remotes.preview.project_id is not used: push a branch to a project of its own, with --project"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			r, err := open(t, test.config, test.files)
			if err != nil {
				t.Fatal(err)
			}

			var secrets []string
			for _, s := range r.Config.Secrets {
				secrets = append(secrets, s.Name+"="+s.Value)
			}

			if diff := cmp.Diff(describe(r.Config.Auth), test.want); diff != "" {
				t.Errorf("settings (-got +want):\n%s", diff)
			}
			if diff := cmp.Diff(secrets, test.secrets); diff != "" {
				t.Errorf("secrets (-got +want):\n%s", diff)
			}
			if diff := cmp.Diff(texts(r.Notes), test.notes); diff != "" {
				t.Errorf("notes (-got +want):\n%s", diff)
			}
		})
	}
}

// TestProblems checks that each mistake is named with its line, and all at once.
func TestProblems(t *testing.T) {
	t.Parallel()

	const file = "supabase/config.toml:"
	for name, test := range map[string]struct {
		config string
		want   []string
	}{
		"syntax":   {"[auth]\nsite_url = \"x\n", []string{file + "2: basic strings cannot have new lines"}},
		"twice":    {"[auth]\na = 1\na = 2\n", []string{file + "3: key a is already defined"}},
		"no table": {"auth = 1\n", []string{file + "1: auth must be a table"}},
		"types": {"[auth]\nsite_url = 1\nenable_signup = \"yes please\"\nadditional_redirect_urls = \"a\"\njwt_expiry = 1.5\n",
			[]string{file + "2: auth.site_url must be a text", file + "3: auth.enable_signup must be true or false",
				file + "5: auth.jwt_expiry must be a whole number, 120 to 604800"}},
		"bounds": {"[auth]\njwt_expiry = 1\npassword_requirements = \"strong\"\n[auth.email]\nmax_frequency = \"soon\"\n",
			[]string{file + "2: auth.jwt_expiry must be a whole number, 120 to 604800",
				file + "3: auth.password_requirements must be letters_digits, lower_upper_letters_digits, " +
					"lower_upper_letters_digits_symbols or empty",
				file + "5: auth.email.max_frequency must be a duration such as \"60s\" or \"24h\", 0 to 86400 seconds"}},
		"variables": {"[auth]\nsite_url = \"env(NOWHERE)\"\n[auth.external.github]\nenabled = true\nclient_id = \"env(GITHUB_ID)\"\n",
			[]string{file + "2: auth.site_url needs the variable NOWHERE, which neither the environment nor a file .env has",
				file + "5: auth.external.github.client_id needs the variable GITHUB_ID, which neither the environment nor a file .env has"}},
		"template": {"[auth.email.template.invite]\ncontent_path = \"./nowhere.html\"\n",
			[]string{file + "2: auth.email.template.invite.content_path must be a readable text file in the repository: ./nowhere.html"}},
		"template elsewhere": {"[auth.email.template.invite]\ncontent_path = \"/etc/passwd\"\n",
			[]string{file + "2: auth.email.template.invite.content_path must be a readable text file in the repository: /etc/passwd"}},
		"incomplete": {"[auth.email.smtp]\nhost = \"a\"\n[auth.external.github]\nenabled = true\n[auth.hook.send_email]\nenabled = true\n" +
			"uri = \"https://a.example\"\n",
			[]string{file + "1: auth.email.smtp needs host, port and admin_email", file + "3: auth.external.github needs client_id",
				file + "5: auth.hook.send_email needs secrets, by which its requests are signed"}},
		"seeds": {"[db.seed]\nsql_paths = [\"../**\"]\n",
			[]string{file + "2: db.seed.sql_paths names supabase, which is no file that can be read"}},
		"size": {"[storage.buckets.photos]\nfile_size_limit = \"large\"\n",
			[]string{file + "2: storage.buckets.photos.file_size_limit must be a size such as \"50MiB\""}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			_, err := open(t, test.config, nil)
			problems, _ := errors.AsType[Problems](err)
			if diff := cmp.Diff(texts(problems), test.want); diff != "" {
				t.Errorf("%v (-got +want):\n%s", err, diff)
			}
		})
	}
}

// TestMissingSecrets: a secret that the environment lacks is a mistake unless the project has it.
func TestMissingSecrets(t *testing.T) {
	t.Parallel()

	r, err := open(t, "[auth.external.github]\nenabled = true\nclient_id = \"a\"\nsecret = \"env(GITHUB_SECRET)\"\n", nil)
	if err != nil {
		t.Fatal(err)
	}

	got := fmt.Sprint(r.CheckSecrets(nil))
	want := "supabase/config.toml:4: auth.external.github.secret needs the variable GITHUB_SECRET, which neither the " +
		"environment nor a file .env has"
	if got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if err := r.CheckSecrets([]string{"providers.github"}); err != nil {
		t.Errorf("with the secret in the project: got %v", err)
	}
}

// TestRest maps the rest of a configuration: rows API, buckets, seeds, privileges.
func TestRest(t *testing.T) {
	t.Parallel()

	r, err := open(t, "project_id = \"Bücher\"\n[api]\nschemas = [\"public\", \"graphql_public\", \"storage\", \"shop\"]\n"+
		"max_rows = 500\nauto_expose_new_tables = true\nextra_search_path = [\"shop\"]\n[db.seed]\n"+
		"sql_paths = [\"./seeds/*.sql\", \"./seed.sql\", \"../none.sql\"]\n[storage]\nfile_size_limit = \"5MB\"\n"+
		"[storage.buckets.photos]\npublic = true\nallowed_mime_types = [\"image/png\"]\n[storage.buckets.\"my files\"]\n"+
		"[storage.buckets.logs]\nfile_size_limit = \"1.5KiB\"\nobjects_path = \"./logs\"\n",
		map[string]string{"supabase/seed.sql": "select 1;\r\n", "supabase/seeds/b.sql": "select 1;\n",
			"supabase/seeds/a.sql": "select 'é';", "supabase/functions/hello/index.ts": "",
			"supabase/functions/_shared/a.ts": "", "supabase/schemas/a.sql": ""})
	if err != nil {
		t.Fatal(err)
	}

	var seeds, buckets []string
	for _, s := range r.Seeds {
		seeds = append(seeds, fmt.Sprint(s.Path, " ", s.Size))
	}
	for _, b := range r.Config.Buckets {
		buckets = append(buckets, fmt.Sprintf("%d %s %d", b.Line, b.Name, *b.MaxSize))
	}

	if diff := cmp.Diff(describe(r.Config.Rest), []string{"3 schemas=[public shop]", "4 max_rows=500"}); diff != "" {
		t.Errorf("rows API (-got +want):\n%s", diff)
	}
	wantSeeds := []string{"supabase/seeds/a.sql 12", "supabase/seeds/b.sql 10", "supabase/seed.sql 11"}
	if diff := cmp.Diff(seeds, wantSeeds); diff != "" {
		t.Errorf("seeds (-got +want):\n%s", diff)
	}
	if diff := cmp.Diff(buckets, []string{"15 logs 1536", "11 photos 5242880"}); diff != "" {
		t.Errorf("buckets (-got +want):\n%s", diff)
	}
	if r.Seeds[1].Hash != r.Seeds[2].Hash {
		t.Error("the hash of a seed depends on its line ends")
	}
	if r.Name() != "Bücher" || r.Config.OpenTables == nil || !*r.Config.OpenTables {
		t.Errorf("got name %q, open tables %v, want Bücher, true", r.Name(), r.Config.OpenTables)
	}

	want := []string{
		"supabase/config.toml:3: api.schemas names storage, which is the platform's: the rows API does not show it",
		"supabase/config.toml:6: api.extra_search_path is not used: the search path is public, extensions",
		"supabase/config.toml:8: db.seed.sql_paths names no file in the repository: ../none.sql",
		"supabase/config.toml:14: storage.buckets.my files is not created: the name of a new bucket has 3 to 63 letters, digits, _ or -",
		"supabase/config.toml:17: storage.buckets.logs.objects_path names files: upload them by socle files create logs",
		"supabase/schemas: has the schema, but no migration does: write the first one from these files",
	}
	if diff := cmp.Diff(texts(r.Notes), want); diff != "" {
		t.Errorf("notes (-got +want):\n%s", diff)
	}
}

// TestNoConfig: a folder with migrations only is a repository.
func TestNoConfig(t *testing.T) {
	t.Parallel()

	root := write(t, map[string]string{"supabase/migrations/1_a.sql": "", "src/app.ts": ""})
	found, err := Find(filepath.Join(root, "src"))
	if err != nil || found != root {
		t.Errorf("Find from a folder inside: got %s, %v, want %s", found, err, root)
	}

	r, err := Open(root, environment(nil))
	if err != nil || r.Name() != "book shop" || len(r.Notes) > 0 {
		t.Errorf("got %+v, %v", r, err)
	}

	if _, err := Find(t.TempDir()); !errors.Is(err, ErrNone) {
		t.Errorf("Find without a repository: got %v", err)
	}
}
