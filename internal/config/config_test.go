package config

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const regularKey = "q83vEjRWeJCrze8SNFZ4kKvN7xI0VniQq83vEjRWeJA=" // at most 8 distinct bytes

// randomKey is base64 of 32 random-looking bytes.
const randomKey = "gV7pCq2m0wXnT4sZ9yLd5eKr8uBf1hJa3iOcGQxEvMk="

var comparePrefix = cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })

func TestLoadDefaults(t *testing.T) {
	t.Parallel()

	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}

	want := Config{
		Addr: "127.0.0.1:8080", DataDir: filepath.Join(here, "socle-data"), RateLimit: true, SignUp: true,
		PasswordMin: 8, FunctionProcesses: 64, LogFormat: "text", LogLevel: slog.LevelInfo, Drain: 5 * time.Second,
		ACMEDirectory:   "https://acme-v02.api.letsencrypt.org/directory",
		LeakedPasswords: "https://api.pwnedpasswords.com/range/",
	}

	for name, environ := range map[string][]string{
		"nothing":     nil,
		"other names": {"PATH=/bin", "socle_addr=:1", "SOCLEADDR=:1", "XSOCLE_ADDR=:1", "="},
		"empty": {"SOCLE_ADDR=", "SOCLE_PASSWORD_MIN=", "SOCLE_SECRET_KEY=", "SOCLE_SECRET_KEY_FILE=",
			"SOCLE_LOG_LEVEL="},
	} {
		got, err := Load(environ, map[string]string{"addr": "", "log-format": ""})
		if diff := cmp.Diff(want, got, comparePrefix); diff != "" || err != nil {
			t.Errorf("Load of %s: %v (-want +got):\n%s", name, err, diff)
		}
	}
}

func TestLoad(t *testing.T) {
	t.Parallel()

	environ := []string{
		"SOCLE_ADDR=[::1]:0", "SOCLE_DATA_DIR=/var/lib/socle/",
		"SOCLE_DATABASE_URL=postgres://socle:canary@db:5432/socle", "SOCLE_PUBLIC_URL=https://api.example.com/base/",
		"SOCLE_TLS_CERT=/etc/socle/chain.pem", "SOCLE_TLS_KEY=/etc/socle/key.pem", "SOCLE_REDIRECT_ADDR=:80",
		"SOCLE_ACME_DIRECTORY=https://ca.example.com/acme",
		"SOCLE_STORAGE_URL=file:///srv/blobs%20here", "SOCLE_SECRET_KEY=" + randomKey, "SOCLE_RATE_LIMIT=off",
		"SOCLE_FUNCTION_PROCESSES=8",
		"SOCLE_SIGN_UP=closed", "SOCLE_PASSWORD_MIN=256", "SOCLE_TRUSTED_PROXIES=10.1.2.3/8, ::1,::ffff:192.0.2.1",
		"SOCLE_LOG_FORMAT=json", "SOCLE_LOG_LEVEL=warn", "SOCLE_POSTGRES_BIN=/usr/lib/postgresql/15/bin",
		"SOCLE_METRICS_ADDR=:9090", "SOCLE_SLOW_REQUEST=1500ms", "SOCLE_DRAIN=0s",
		"SOCLE_SMTP_URL=smtps://u:p%40@mail.example.com",
		"SOCLE_MAIL_FROM=Socle <noreply@example.com>",
	}

	want := Config{
		Addr: "[::1]:0", DataDir: "/var/lib/socle", DatabaseURL: "postgres://socle:canary@db:5432/socle",
		PublicURL: "https://api.example.com/base",
		TLSCert:   "/etc/socle/chain.pem", TLSKey: "/etc/socle/key.pem", RedirectAddr: ":80",
		ACMEDirectory: "https://ca.example.com/acme", StorageURL: "file:///srv/blobs%20here",
		SecretKey: randomKey, PasswordMin: 256, FunctionProcesses: 8,
		TrustedProxies: []netip.Prefix{
			netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("::1/128"),
			netip.MustParsePrefix("192.0.2.1/32"),
		},
		LogFormat: "json", LogLevel: slog.LevelWarn,
		PostgresBin: "/usr/lib/postgresql/15/bin", MetricsAddr: ":9090", SlowRequest: 1500 * time.Millisecond,
		SMTPURL: "smtps://u:p%40@mail.example.com", MailFrom: "Socle <noreply@example.com>",
		LeakedPasswords: "https://api.pwnedpasswords.com/range/",
	}

	got, err := Load(environ, nil)
	if diff := cmp.Diff(want, got, comparePrefix); diff != "" || err != nil {
		t.Fatalf("Load: %v (-want +got):\n%s", err, diff)
	}

	if got, want := got.StorageDir(), "/srv/blobs here"; got != want {
		t.Errorf("StorageDir = %q, want %q", got, want)
	}

	got, err = Load(append(environ, "SOCLE_LOG_LEVEL=error"), map[string]string{
		"addr": "localhost:1", "sign-up": "open", "metrics-addr": "",
	})

	want.Addr, want.SignUp, want.LogLevel = "localhost:1", true, slog.LevelError
	if diff := cmp.Diff(want, got, comparePrefix); diff != "" || err != nil {
		t.Errorf("Load with flags: %v (-want +got):\n%s", err, diff)
	}
}

// TestStringLoads: Load accepts the output of String, except for secrets.
func TestStringLoads(t *testing.T) {
	t.Parallel()

	want, err := Load([]string{
		"SOCLE_TRUSTED_PROXIES=10.0.0.0/8,::1", "SOCLE_SIGN_UP=closed", "SOCLE_LOG_LEVEL=debug",
		"SOCLE_OUTBOUND_NETWORKS=192.168.7.0/24", "SOCLE_LEAKED_PASSWORDS=http://mirror/range",
		"SOCLE_PUBLIC_URL=http://h:1", "SOCLE_SLOW_REQUEST=90s",
	}, nil)
	if err != nil {
		t.Fatal(err)
	}

	got, err := Load(strings.Split(strings.TrimSpace(want.String()), "\n"), nil)
	if diff := cmp.Diff(want, got, comparePrefix); diff != "" || err != nil {
		t.Errorf("Load of %s: %v (-want +got):\n%s", want, err, diff)
	}
}

func TestLoadRefuses(t *testing.T) {
	t.Parallel()

	for name, values := range map[string][]string{
		"SOCLE_ADDR": {"8080", "localhost", ":http", ":65536", ":-1", "http://localhost:80", "a b:1"},
		"SOCLE_DATABASE_URL": {"canary", "mysql://canary@h/d", "host=h password=canary", "postgres://u:can%ary@h/d",
			"postgres://u:canary@h:port/d"},
		"SOCLE_PUBLIC_URL": {"example.com", "ftp://example.com", "https://", "https://:443", "https://u:p@h",
			"https://h?x", "https://h#x", "https://h:x"},
		"SOCLE_STORAGE_URL": {"s3://", "s3://b", "s3:bucket", "s3://Bucket", "s3://key:secret@bucket",
			"s3://bucket/../x", "s3://bucket/a//b", "s3://bucket?x=1", "s3://bucket?region=a&region=b",
			"s3://bucket?region=a/b", "s3://bucket?endpoint=host", "s3://bucket?endpoint=https://host/path",
			"s3://bucket?endpoint=https://u:p@host", "s3://bucket?path_style=perhaps", "s3://bucket?timeout=0s",
			"s3://bucket?timeout=1h", "/srv/blobs", "file://relative", "file:relative", "file:///", "file:///srv?x",
			"file:///a/..", "file:///a%00b"},
		"SOCLE_TLS":            {"on", "auto"},
		"SOCLE_TLS_CERT":       {"chain.pem"},
		"SOCLE_ACME_DIRECTORY": {"http://ca.example.com", "ca.example.com", "https://u:p@ca.example.com"},
		"SOCLE_REDIRECT_ADDR":  {"80", ":80"},
		"SOCLE_RATE_LIMIT":     {"true", "ON", "1"},
		"SOCLE_SIGN_UP":        {"on", "yes"},
		"SOCLE_PASSWORD_MIN":   {"7", "257", "-8", "8.5", "eight", "99999999999999999999"},
		"SOCLE_LOG_FORMAT":     {"xml", "JSON"},
		"SOCLE_LOG_LEVEL":      {"trace", "INFO", "info+1"},
		"SOCLE_DRAIN":          {"5", "-1s", "2m", "soon"},
		"SOCLE_SLOW_REQUEST":   {"1", "0s", "-1s", "soon"},
		"SOCLE_METRICS_ADDR":   {"9090"},
		"SOCLE_SMTP_URL": {"canary", "http://u:canary@h", "smtp://", "smtp://u:canary@h:port", "smtp://h/path",
			"smtp://u:canary@h?x"},

		"SOCLE_FUNCTION_PROCESSES": {"7", "1025"},

		"SOCLE_CLUSTER_ADDR": {"7422", "http://10.0.0.5:7422"},
		"SOCLE_NATS_URL": {"canary", "http://u:canary@h", "nats://", "nats://h/path", "nats://h:port",
			"nats://h,u:canary@h2", "nats://h?x=canary"},
		"SOCLE_MAIL_FROM": {"nobody", "a@example.com, b@example.com",
			"a@example.com\r\nBcc: b@example.com", "<>"},
		"SOCLE_SECRET_KEY_FILE":   {"/dev/null", "/nonexistent/key"},
		"SOCLE_OUTBOUND_NETWORKS": {"localhost", "10.0.0.0/33"},
		"SOCLE_LEAKED_PASSWORDS":  {"api.pwnedpasswords.com", "ftp://h/", "relative/folder", "https://"},
		"SOCLE_TRUSTED_PROXIES":   {"proxy", "10.0.0.0/33", "10.0.0.1,", "fe80::1%eth0", "*"},
		"SOCLE_SECRET_KEY": {
			"changeme", "canary", "canary canary canary canary canary canary canary",
			"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
			strings.Repeat("00", 32), strings.Repeat("ab", 64), strings.Repeat("0123456789abcdef", 4), regularKey,
			randomKey[:40],
			strings.Repeat("changeme", 6), "your-super-secret-key-please-set-this-123456",
			"dGhpcyBpcyBteSBzZWNyZXQga2V5IGZvciBzb2NsZSBzZXJ2ZXI=", // "this is my secret key for socle server"
		},
	} {
		for _, value := range values {
			_, err := Load([]string{name + "=" + value}, nil)
			if err == nil || !strings.HasPrefix(err.Error(), strings.TrimSuffix(name, fileSuffix)+": ") ||
				strings.Contains(err.Error(), "\n") {
				t.Errorf("Load of %s=%s = %v, want one line that begins with the name", name, value, err)
			}
			if err != nil && strings.Contains(err.Error(), "canary") {
				t.Errorf("Load of a secret = %v, want an error that does not show it", err)
			}
		}
	}
}

// TestLoadComparesSettings: constraints between two settings.
func TestLoadComparesSettings(t *testing.T) {
	t.Parallel()

	const files = "SOCLE_TLS_CERT=/c SOCLE_TLS_KEY=/k"
	for environ, want := range map[string]string{
		"SOCLE_TLS_KEY=/k": "SOCLE_TLS_CERT: ",
		files + " SOCLE_PUBLIC_URL=http://a.example.com":  "SOCLE_TLS_CERT: requires",
		files + " SOCLE_PUBLIC_URL=https://a.example.com": "",
		files: "",
		"SOCLE_TLS=auto SOCLE_PUBLIC_URL=http://a.example.com":            "SOCLE_TLS: auto requires",
		"SOCLE_TLS=auto SOCLE_PUBLIC_URL=https://localhost":               "SOCLE_TLS: auto requires",
		"SOCLE_TLS=auto SOCLE_PUBLIC_URL=https://192.0.2.1":               "SOCLE_TLS: auto requires",
		"SOCLE_TLS=auto SOCLE_PUBLIC_URL=https://a.example.com " + files:  "SOCLE_TLS: auto and",
		"SOCLE_REDIRECT_ADDR=:80 SOCLE_PUBLIC_URL=http://a.example.com":   "SOCLE_REDIRECT_ADDR: requires",
		"SOCLE_TLS=auto SOCLE_PUBLIC_URL=https://a.example.com":           "",
		"SOCLE_REDIRECT_ADDR=:80 SOCLE_PUBLIC_URL=https://a.example.com ": "", // a proxy has the certificate
	} {
		_, err := Load(strings.Fields(environ), nil)
		if (want == "") != (err == nil) || (err != nil && !strings.HasPrefix(err.Error(), want)) {
			t.Errorf("Load of %s = %v, want %q", environ, err, want)
		}
	}

	_, err := Load([]string{"SOCLE_SMTP_URL=smtp://localhost"}, nil)
	if want := "SOCLE_MAIL_FROM: is required with SOCLE_SMTP_URL"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// TestLoadBesideAClient: the server accepts and ignores the variables of the client commands.
func TestLoadBesideAClient(t *testing.T) {
	t.Parallel()

	if _, err := Load([]string{
		"SOCLE_URL=http://localhost", "SOCLE_TOKEN=t", "SOCLE_PROJECT=p", "SOCLE_PASSPHRASE=secret",
	}, nil); err != nil {
		t.Errorf("Load = %v", err)
	}
}

func TestLoadReportsAll(t *testing.T) {
	t.Parallel()

	_, err := Load([]string{
		"SOCLE_ADDR=x", "SOCLE_ADRR=:1", "SOCLE_PASSWORT_MIN=9", "SOCLE_DATABASE_URL_FIL=x", "SOCLE_ADDR_FILE=x",
		"SOCLE_LOG_LEVEL=x",
	},
		map[string]string{"sign-up": "x", "data": "x"})
	if err == nil {
		t.Fatal("Load = nil, want an error")
	}

	want := []string{
		"SOCLE_ADDR_FILE: unknown setting; did you mean SOCLE_ADDR?",
		"SOCLE_ADRR: unknown setting; did you mean SOCLE_ADDR?",
		"SOCLE_DATABASE_URL_FIL: unknown setting; did you mean SOCLE_DATABASE_URL_FILE?",
		"SOCLE_PASSWORT_MIN: unknown setting; did you mean SOCLE_PASSWORD_MIN?",
		"--data: unknown flag; did you mean --data-dir?",
		`SOCLE_ADDR: "x" is not host:port with a port from 0 to 65535`,
		`SOCLE_SIGN_UP: "x" is not one of open, closed`,
		`SOCLE_LOG_LEVEL: "x" is not one of debug, info, warn, error`,
	}
	if diff := cmp.Diff(want, strings.Split(err.Error(), "\n")); diff != "" {
		t.Errorf("Load (-want +got):\n%s", diff)
	}
}

// TestReplicas: standbys are those of a PostgreSQL that is named.
func TestReplicas(t *testing.T) {
	t.Parallel()

	const replica = "SOCLE_REPLICA_URL=postgres://socle:canary@a:1,b:2/socle"
	_, err := Load([]string{replica}, nil)
	if want := "SOCLE_DATABASE_URL: is required with SOCLE_REPLICA_URL"; err == nil || err.Error() != want {
		t.Errorf("without a database: got %v, want %s", err, want)
	}

	c, err := Load([]string{replica, "SOCLE_DATABASE_URL=postgres://socle@a/socle"}, nil)
	if err != nil || string(c.ReplicaURL) != strings.TrimPrefix(replica, "SOCLE_REPLICA_URL=") {
		t.Errorf("got %q, %v", string(c.ReplicaURL), err)
	}
}

func TestSecretFile(t *testing.T) {
	t.Parallel()

	file := func(content string) string {
		name := filepath.Join(t.TempDir(), "secret")
		if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}

		return name
	}

	const one, two = "postgres://u:canary1@h/d", "postgres://u:canary2@h/d"
	for _, tt := range []struct {
		environ []string
		flag    string
		want    Secret
	}{
		{[]string{"SOCLE_DATABASE_URL_FILE=" + file(one+"\r\n")}, "", one},
		{[]string{"SOCLE_DATABASE_URL_FILE=" + file(one)}, file(two), two},
		{[]string{"SOCLE_DATABASE_URL=" + one}, file(two + "\n"), two},
		{[]string{"SOCLE_DATABASE_URL=" + one, "SOCLE_DATABASE_URL_FILE="}, "", one},
	} {
		got, err := Load(tt.environ, map[string]string{"database-url-file": tt.flag})
		if got.DatabaseURL != tt.want || err != nil {
			t.Errorf("Load(%q, %q) = %q, %v, want %q", tt.environ, tt.flag, string(got.DatabaseURL), err,
				string(tt.want))
		}
	}

	for _, environ := range [][]string{
		{"SOCLE_DATABASE_URL=" + one, "SOCLE_DATABASE_URL_FILE=" + file(two)},
		{"SOCLE_DATABASE_URL_FILE=" + file("")},
		{"SOCLE_DATABASE_URL_FILE=" + file("\n")},
		{"SOCLE_DATABASE_URL_FILE=" + file(one+strings.Repeat("x", 1<<17))},
		{"SOCLE_DATABASE_URL_FILE=" + t.TempDir()},
		{"SOCLE_DATABASE_URL_FILE=" + file("canary")},
	} {
		_, err := Load(environ, nil)
		if err == nil || !strings.HasPrefix(err.Error(), "SOCLE_DATABASE_URL: ") ||
			strings.Contains(err.Error(), "canary") {
			t.Errorf("Load(%q) = %v, want an error that names the setting and not the secret", environ, err)
		}
	}
}

func TestRedacted(t *testing.T) {
	t.Parallel()

	c := Config{Addr: "here:1", DatabaseURL: "canary", SecretKey: "canary"}
	var log strings.Builder
	slog.New(slog.NewTextHandler(&log, nil)).Info("start", "config", c, "url", c.DatabaseURL)
	slog.New(slog.NewJSONHandler(&log, nil)).
		Info("start", "config", c, "url", c.DatabaseURL, "all", []any{c.SecretKey, &c.SecretKey})

	text, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}

	printed := []string{log.String(), string(text), c.String()}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		printed = append(printed, fmt.Sprintf(verb, c), fmt.Sprintf(verb, &c), fmt.Sprintf(verb, c.SecretKey),
			fmt.Sprintf(verb, []any{c.SecretKey}))
	}

	for _, p := range printed {
		if strings.Contains(p, "canary") || strings.Contains(p, "63616e617279") {
			t.Errorf("printed %s, want no secret", p)
		}
	}

	for _, want := range []string{"SOCLE_ADDR=here:1\n", "SOCLE_SECRET_KEY=" + redacted + "\n"} {
		if !strings.Contains(c.String(), want) {
			t.Errorf("String = %s, want it to have %s", c, want)
		}
	}

	if got := (Config{}).DatabaseURL.String(); got != "" {
		t.Errorf("the empty secret prints %q, want nothing", got)
	}
}

func TestSettings(t *testing.T) {
	t.Parallel()

	help := Help()
	for _, s := range Settings() {
		name := s.Name
		if s.Secret {
			name += "[_FILE]"
		}

		want := "--" + s.Flag
		line := ""
		for l := range strings.Lines(help) {
			if strings.HasPrefix(l, want+" ") {
				line = l
			}
		}

		for _, part := range []string{name, s.Default, s.Meaning} {
			if !strings.Contains(line, part) {
				t.Errorf("line of help %q has no %q", line, part)
			}
		}

		if s.Meaning == "" || s.Secret != strings.HasSuffix(s.Flag, "-file") {
			t.Errorf("setting %+v has no meaning, or a flag that does not fit a secret", s)
		}
	}
}

func TestBaseURL(t *testing.T) {
	t.Parallel()

	for _, tt := range []struct{ public, addr, want string }{
		{"", "127.0.0.1:8080", "http://127.0.0.1:8080"},
		{"", "[::1]:80", "http://[::1]:80"},
		{"", "0.0.0.0:8080", "http://localhost:8080"},
		{"", "[::]:8080", "http://localhost:8080"},
		{"https://api.example.com", "0.0.0.0:8080", "https://api.example.com"},
	} {
		addr, err := net.ResolveTCPAddr("tcp", tt.addr)
		if err != nil {
			t.Fatal(err)
		}

		if got := (Config{PublicURL: tt.public}).BaseURL(addr); got != tt.want {
			t.Errorf("BaseURL(%s) with public URL %q = %s, want %s", tt.addr, tt.public, got, tt.want)
		}
		if got, want := (Config{TLSCert: "/c"}).BaseURL(addr), "https://"; !strings.HasPrefix(got, want) {
			t.Errorf("BaseURL(%s) of HTTPS = %s, want %s…", tt.addr, got, want)
		}
	}
}

func TestS3(t *testing.T) {
	t.Parallel()

	keys := []string{"AWS_ACCESS_KEY_ID=canary", "AWS_SECRET_ACCESS_KEY=canary2"}
	for address, want := range map[string]S3{
		"s3://bucket": {Bucket: "bucket", Region: "us-east-1", Timeout: 30 * time.Second},
		"s3://bucket/a/b.c/?region=eu-central-1&timeout=5s": {Bucket: "bucket", Prefix: "a/b.c",
			Region: "eu-central-1", Timeout: 5 * time.Second},
		"s3://bucket?endpoint=http://127.0.0.1:9000": {Bucket: "bucket",
			Endpoint: "http://127.0.0.1:9000", Region: "us-east-1", PathStyle: true, Timeout: 30 * time.Second},
		"s3://bucket?endpoint=https://s3.example.com&path_style=false": {Bucket: "bucket",
			Endpoint: "https://s3.example.com", Region: "us-east-1", Timeout: 30 * time.Second},
	} {
		c, err := Load(append(keys, "SOCLE_STORAGE_URL="+address), nil)
		got, ok := c.S3()

		want.AccessKey, want.SecretKey = "canary", "canary2"
		if diff := cmp.Diff(want, got); diff != "" || err != nil || !ok {
			t.Errorf("S3 of %s: %v (-want +got):\n%s", address, err, diff)
		}

		if text := c.String(); strings.Contains(text, "canary") {
			t.Errorf("a secret is printed: %s", text)
		}
	}

	if c, err := Load(append(keys, "SOCLE_S3_ACCESS_KEY=mine"), nil); err != nil || c.S3AccessKey != "mine" ||
		c.S3SecretKey != "canary2" {
		t.Errorf("Load = %q, %q, %v, want our own setting to win", string(c.S3AccessKey), string(c.S3SecretKey), err)
	}
	if _, ok := (Config{StorageURL: "file:///srv"}).S3(); ok {
		t.Error("S3 of a file URL = true, want false")
	}

	for _, environ := range [][]string{keys[:1], keys[1:]} {
		if _, err := Load(append(slices.Clone(environ), "SOCLE_STORAGE_URL=s3://bucket"), nil); err == nil {
			t.Errorf("Load with %q = nil, want an error", environ)
		}
	}

	if _, err := Load([]string{"SOCLE_STORAGE_URL=s3://bucket"}, nil); err != nil {
		t.Errorf("Load without keys = %v, want it to leave them to a role", err)
	}

	for token, environ := range map[Secret][]string{
		"canary3": append(keys, "AWS_SESSION_TOKEN=canary3"),
		// session token of other keys
		"": append(keys, "AWS_SESSION_TOKEN=canary3", "SOCLE_S3_ACCESS_KEY=mine", "SOCLE_S3_SECRET_KEY=mine too"),
		"own": append(keys, "AWS_SESSION_TOKEN=canary3", "SOCLE_S3_ACCESS_KEY=mine", "SOCLE_S3_SECRET_KEY=mine too",
			"SOCLE_S3_SESSION_TOKEN=own"),
	} {
		c, err := Load(append(slices.Clone(environ), "SOCLE_STORAGE_URL=s3://bucket"), nil)
		if s3, _ := c.S3(); s3.SessionToken != token || err != nil {
			t.Errorf("Load with %q has the session token %q, %v, want %q", environ, string(s3.SessionToken), err,
				string(token))
		}
	}
}
