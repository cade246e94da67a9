package standalone

import (
	"encoding/base64"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/socle-dev/socle/internal/rest/catalog"
)

// write writes a configuration file.
func write(t *testing.T, text string) string {
	t.Helper()

	name := filepath.Join(t.TempDir(), "socle.conf")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}

	return name
}

func TestLoad(t *testing.T) {
	t.Parallel()

	c, err := Load(write(t, `
# a comment
db-uri = "postgres://authenticator:mysecret@localhost/app" # and another
db-schema = "api, private"
db-anon-role="web_anon"
db-max-rows = 100
db-aggregates-enabled = true
db-tx-end = "rollback-allow-override"
db-pre-request = "auth.check"
db-root-spec = "root"
jwt-role-claim-key = "$$.app.role"
server-port = 4000
app.settings.name = "$(NAME) says \"$$5\""
db-prepared-statements = false
db-pool-automatic-recovery = false
`), []string{"NAME=Ada", "PGRST_SERVER_PORT=5000", "PGRST_DB_EXTRA_SEARCH_PATH=", "PGRST_APP_SETTINGS_OTHER=2",
		"PGRST_LOG_LEVEL=warn", "OTHER_THING=1",
		"PGRST_SERVICE_HOST=10.0.0.1", "PGRST_SERVICE_PORT=3000", "PGRST_SERVICE_PORT_HTTP=3000",
		"PGRST_PORT=tcp://10.0.0.1:3000", "PGRST_PORT_3000_TCP=tcp://10.0.0.1:3000",
		"PGRST_PORT_3000_TCP_ADDR=10.0.0.1", "PGRST_ADMIN_SERVICE_HOST=10.0.0.2",
		"PGRST_SERVER_CORS_ALLOWED_ORIGINS=https://a, https://b", "PGRST_OPENAPI_MODE=disabled", "PGRST_DB_ANON_ROLE="})
	if err != nil {
		t.Fatal(err)
	}

	most := int64(100)

	got := map[string]any{
		"uri": c.databaseURL, "schemas": c.api.Schemas, "anon": c.api.Auth.Anonymous, "rows": c.api.Limits.MaxRows,
		"aggregates": c.api.Features.Aggregates, "rollback": c.api.Features.Rollback,
		"override": c.api.Features.TxOverride,
		"pre":      c.api.PreRequest, "root": c.api.RootSpec, "claim": c.jwt.RoleClaim,
		"unprepared": c.api.Session.NoPreparedStatements, "port": c.addr.port, "settings": c.api.Settings,
		"path": c.api.SearchPath, "level": c.LogLevel, "origins": c.api.Origins, "pool": c.pool,
		"openapi": c.api.OpenAPI.Mode, "warnings": c.Warnings, "verifies": c.api.Auth.Verify != nil,
	}

	want := map[string]any{
		"uri": "postgres://authenticator:mysecret@localhost/app", "schemas": []string{"api", "private"}, "anon": "",
		"rows": &most, "aggregates": true, "rollback": true, "override": true,
		"pre": catalog.Name{Schema: "auth", Name: "check"}, "root": catalog.Name{Schema: "api", Name: "root"},
		"claim": "$.app.role", "port": 5000,
		"settings": map[string]string{"app.settings.name": `Ada says "$5"`, "app.settings.other": "2"},
		"path":     []string(nil), "level": slog.LevelWarn, "origins": []string{"https://a", "https://b"}, "pool": 10,
		"openapi": "disabled", "verifies": false, "unprepared": true,
		"warnings": []string{"db-pool-automatic-recovery is not supported: a lost connection is always replaced"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}

	c, err = c.withParameters(map[string]string{
		"pgrst.db_schemas": "other", "pgrst.server_port": "1", "pgrst.app.settings.name": "db",
	})
	if err != nil || c.api.Schemas[0] != "other" || c.api.RootSpec.Schema != "other" || c.addr.port != 5000 ||
		c.api.Settings["app.settings.name"] != "db" || len(c.Warnings) != 2 {
		t.Errorf("with settings in the database: %v, %+v", err, c)
	}
}

func TestLoadRefuses(t *testing.T) {
	t.Parallel()

	short := "PGRST_JWT_SECRET=short"
	for _, test := range []struct{ file, env, want string }{
		{`db-schemsa = "x"`, "", "db-schemsa: unknown setting; did you mean db-schemas?"},
		{"", "PGRST_DB_POLL=1", "PGRST_DB_POLL: unknown setting; did you mean PGRST_DB_POOL?"},
		{"db-schemas", "", "line 1 is not name = value"},
		{"\ndb-schemas = public", "", "line 2: db-schemas: text must be in double quotes"},
		{`db-schemas = "public`, "", "no closing quote"},
		{`db-schemas = "public" x`, "", "unexpected characters"},
		{`db-schemas = "$(NOWHERE)"`, "", "$(NOWHERE) is not set"},
		{`jwt-role-claim-key = "$.role"`, "", "write a dollar sign as $$"},
		{`app.settings.x' = "1"`, "", "app.settings.x'"},
		{"", "PGRST_DB_SCHEMAS=pg_catalog", "belongs to PostgreSQL"},
		{"", "PGRST_PORT=3000", "PGRST_PORT: unknown setting"},
		{"", "PGRST_DB_TX_END=never", "db-tx-end"},
		{"", "PGRST_DB_POOL=0", "db-pool"},
		{"", "PGRST_DB_POOL_MAX_IDLETIME=soon", "db-pool-max-idletime"},
		{"", "PGRST_DB_PLAN_ENABLED=maybe", "db-plan-enabled"},
		{"", "PGRST_DB_MAX_ROWS=-1", "db-max-rows"},
		{"", "PGRST_LOG_LEVEL=loud", "log-level"},
		{"", "PGRST_OPENAPI_MODE=open", "openapi-mode"},
		{"", "PGRST_OPENAPI_SERVER_PROXY_URI=ftp://x", "openapi-server-proxy-uri"},
		{"", "PGRST_ADMIN_SERVER_PORT=3000", "admin-server-port: must differ"},
		{"", "PGRST_SERVER_TRACE_HEADER=a:b", "server-trace-header"},
		{"", "PGRST_JWT_AUD=:no", "jwt-aud"},
		{"", "PGRST_JWT_ROLE_CLAIM_KEY=.", "jwt-role-claim-key"},
		{"", "PGRST_DB_URI=@/nowhere", "/nowhere"},
		{"", "PGRST_SERVER_UNIX_SOCKET_MODE=888", "server-unix-socket-mode"},
		{"", "PGRST_ADMIN_SERVER_UNIX_SOCKET_MODE=400", "from 600 to 777"},
		{"", "PGRST_DB_POOL_ACQUISITION_TIMEOUT=0", "db-pool-acquisition-timeout"},
		{"", "PGRST_CLIENT_ERROR_VERBOSITY=quiet", "client-error-verbosity"},
		{"", short, "32 characters"},
		{"jwt-secret-is-base64 = true", short + "!", "not base64"},
	} {
		file := ""
		if test.file != "" {
			file = write(t, test.file)
		}

		_, err := Load(file, []string{test.env})
		if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "short!") {
			t.Errorf("%q, %q: got %v, want an error with %q", test.file, test.env, err, test.want)
		}
	}

	if _, err := Load("/nowhere/socle.conf", nil); err == nil {
		t.Error("a missing file was read")
	}
}

func TestBoolean(t *testing.T) {
	t.Parallel()

	for text, want := range map[string]string{
		"true": "true", "TRUE": "true", `"True"`: "true", " t-r-u-e ": "true", "yes": "true", "On": "true", "1": "true",
		"7": "true", "00000000000000000000000000001": "true", "False": "false", "'false'": "false", "no": "false",
		"0": "false", "-1": "false", "t": "", "": "", "maybe": "", "1.5": "", "truefalse": "",
	} {
		got := ""
		if v, err := boolean(text); err == nil {
			got = strconv.FormatBool(v)
		}
		if got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func TestSecrets(t *testing.T) {
	t.Parallel()

	const plain = "a secret of more than thirty-two characters"
	key := `{"kty":"oct","k":"` + base64.RawURLEncoding.EncodeToString([]byte(plain)) + `"}`
	for _, environ := range [][]string{
		{"PGRST_JWT_SECRET=" + plain},
		{"PGRST_JWT_SECRET=" + base64.StdEncoding.EncodeToString([]byte(plain)), "PGRST_JWT_SECRET_IS_BASE64=1"},
		{"PGRST_JWT_SECRET=" + base64.RawURLEncoding.EncodeToString([]byte(plain)), "PGRST_SECRET_IS_BASE64=True"},
		{"PGRST_JWT_SECRET=" + key},
		{"PGRST_JWT_SECRET=" + `{"keys":[` + key + `]}`, "PGRST_JWT_CACHE_MAX_ENTRIES=0"},
		{"PGRST_JWT_SECRET=@" + write(t, plain+"\n")},
	} {
		c, err := Load("", environ)
		if err != nil {
			t.Errorf("%q: %v", environ, err)
			continue
		}

		if who, err := c.api.Auth.Verify(nil, sign(plain, `{"role":"ann"}`)); err != nil || who.Role != "ann" {
			t.Errorf("%q: %+v, %v", environ, who, err)
		}
	}
}

// TestSecretFromPipe checks that a secret from a pipe, which can be read only once, is kept when
// the configuration is built again.
func TestSecretFromPipe(t *testing.T) {
	t.Parallel()

	in, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()

	if _, err := io.WriteString(out, secret); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}

	c, err := Load("", []string{fmt.Sprintf("PGRST_JWT_SECRET=@/dev/fd/%d", in.Fd())})
	if err != nil {
		t.Fatal(err)
	}

	for name, again := range map[string]func() (Config, error){
		"loaded":          func() (Config, error) { return c, nil },
		"with parameters": func() (Config, error) { return c.withParameters(nil) },
		"reloaded":        c.reload,
	} {
		got, err := again()
		if err != nil || got.secret != secret {
			t.Errorf("%s: got secret %q, %v, want %q", name, got.secret, err, secret)
		}
	}
}

func TestExampleIsRead(t *testing.T) {
	t.Parallel()

	lines := regexp.MustCompile(`(?m)^# ([a-z0-9.-]+ = )`).ReplaceAllString(Example(), "$1")
	if _, err := Load(write(t, lines), nil); err != nil {
		t.Errorf("%v in\n%s", err, lines)
	}

	for _, s := range settings {
		if has := strings.Contains(lines, "\n"+s.name+" = "); has != (s.set != nil) {
			t.Errorf("%s: got %v in the example", s.name, has)
		}
	}
}

// TestManualListsSettings compares the manual's table with the settings.
func TestManualListsSettings(t *testing.T) {
	t.Parallel()

	text, err := os.ReadFile("../../docs/rest.md")
	if err != nil {
		t.Fatal(err)
	}

	var want strings.Builder
	for _, s := range settings {
		value := ""
		if s.def != "" {
			value = "`" + s.def + "`"
		}

		fmt.Fprintf(&want, "| `%s` | %s | %s |\n", s.name, value, s.helpText())
	}

	if got := strings.Join(regexp.MustCompile("(?m)^\\| `[a-z0-9-]+` \\|.*\n").FindAllString(string(text), -1),
		""); got != want.String() {
		t.Errorf("docs/rest.md differs:\n%s\nwant\n%s", cmp.Diff(want.String(), got), want.String())
	}

	for _, s := range settings {
		if !strings.Contains(Help(), s.variable()+" ") || !strings.Contains(Help(), s.description) {
			t.Errorf("the help lacks %s", s.name)
		}
	}
}

func TestNetwork(t *testing.T) {
	t.Parallel()

	for host, want := range map[string][2]string{
		"!4": {"tcp4", ""}, "!6": {"tcp6", ""}, "*": {"tcp", ""}, "*4": {"tcp", ""}, "*6": {"tcp", ""},
		"127.0.0.1": {"tcp", "127.0.0.1"}, "localhost": {"tcp", "localhost"},
	} {
		if network, host := (listenAddr{host: host}).network(); network != want[0] || host != want[1] {
			t.Errorf("%s: got %s %q, want %q", host, network, host, want)
		}
	}

	l, err := listenAddr{host: "!4"}.listen()
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()

	if at, ok := l.Addr().(*net.TCPAddr); !ok || at.IP.To4() == nil {
		t.Errorf("!4 listens at %v", l.Addr())
	}
}
