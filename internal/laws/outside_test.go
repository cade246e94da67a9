package laws

import (
	"go/ast"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// outgoing lists the files that open outgoing connections, with the source of the address. Only the
// operator decides which private hosts the server can reach: addresses that tenants choose are for
// package outbound, which rejects them on connect.
var outgoing = map[string]string{
	"client/client.go":             "the operator",
	"client/upgrade.go":            "the operator",
	"internal/cli/db.go":           "the file of a proxy on the same machine",
	"internal/blob/s3.go":          "SOCLE_STORAGE_URL",
	"internal/bus/transport.go":    "servers of the install, SOCLE_NATS_URL",
	"internal/certificate/auto.go": "SOCLE_ACME_DIRECTORY",
	"internal/mail/mail.go":        "SOCLE_SMTP_URL",

	"internal/cli/functionsserve.go":     "the server of the developer's project",
	"internal/function/bundle/deno.go":   "the operator: npm's registry, or --from",
	"internal/function/local/open.go":    "a function's own socket, on its developer's machine",
	"internal/function/local/outward.go": "functions on their developer's machine; package outbound's rules, or the project",

	"internal/function/outward.go":               "functions; package outbound's rules, or the server itself",
	"internal/function/sandbox/process_linux.go": "a sandbox's own socket",
	"internal/function/runtime/runtime.go":       "a sandbox's own socket",

	"internal/outbound/outbound.go": "tenants; public networks and SOCLE_OUTBOUND_NETWORKS only",
	"internal/telemetry/export.go":  "OTEL_EXPORTER_OTLP_ENDPOINT",
	"internal/standalone/config.go": "the settings of socle rest",
	"internal/standalone/http.go":   "its own listener",
	"internal/standalone/ready.go":  "the settings of socle rest",
}

// connectCalls matches the code that opens outgoing connections, except to the databases, whose
// addresses are settings.
var connectCalls = map[string]*regexp.Regexp{
	"net": regexp.MustCompile(`^(Dial|Lookup|Resolver$|DefaultResolver$)`),
	"net/http": regexp.MustCompile(
		`^(Client|DefaultClient|DefaultTransport|Transport|Get|Head|Post|PostForm)$`,
	),
	"github.com/nats-io/nats.go":        regexp.MustCompile(`^Connect$`),
	"github.com/caddyserver/certmagic":  regexp.MustCompile(`^NewACMEIssuer$`),
	"crypto/tls":                        regexp.MustCompile(`^Dial`),
	"github.com/lestrrat-go/jwx/v3/jwk": regexp.MustCompile(`^(Fetch|NewCache)`),
	"github.com/lestrrat-go/jwx/v3/jws": regexp.MustCompile(`^WithVerifyAuto$`),

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp": regexp.MustCompile(`^New$`),
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc": regexp.MustCompile(`^New$`),
}

func TestNothingConnectsElsewhere(t *testing.T) {
	t.Parallel()

	found := map[string]bool{}
	parsed := syntax(t)
	for path, p := range tree(t) {
		if strings.HasPrefix(path, "bench/") || slices.Contains(testOnly, path) {
			continue
		}

		for _, name := range p.GoFiles {
			file := filepath.ToSlash(filepath.Join(path, name))

			source := parsed.of[filepath.Join(p.Dir, name)]

			imported := map[string]*regexp.Regexp{}
			for _, i := range source.Imports {
				from := strings.Trim(i.Path.Value, `"`)
				as := from[strings.LastIndex(from, "/")+1:]
				if i.Name != nil {
					as = i.Name.Name
				}

				imported[as] = connectCalls[from]
			}

			ast.Inspect(source, func(n ast.Node) bool {
				s, ok := n.(*ast.SelectorExpr)
				if !ok {
					return true
				}

				x, ok := s.X.(*ast.Ident)
				if !ok {
					return true
				}

				if way := imported[x.Name]; way != nil && way.MatchString(s.Sel.Name) {
					found[file] = true
					if outgoing[file] == "" {
						t.Errorf("%s: %s.%s", file, x.Name, s.Sel.Name)
					}
				}

				return true
			})
		}
	}

	for file := range outgoing {
		if !found[file] {
			t.Errorf("%s opens no connections: remove it from the list", file)
		}
	}
}
