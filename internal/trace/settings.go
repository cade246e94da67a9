package trace

import (
	"encoding/binary"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// New returns the tracer that OpenTelemetry's environment variables ask for, or nil without the
// address of a collector. It exports nothing before [Tracer.Run].
func New(getenv func(string) string, version string, log *slog.Logger) (*Tracer, error) {
	address := getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
	if base := getenv("OTEL_EXPORTER_OTLP_ENDPOINT"); address == "" && base != "" {
		address = strings.TrimSuffix(base, "/") + "/v1/traces"
	}

	disabled, _ := strconv.ParseBool(getenv("OTEL_SDK_DISABLED"))
	if address == "" || disabled || getenv("OTEL_TRACES_EXPORTER") == "none" {
		return nil, nil
	}

	u, err := url.Parse(address)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_ENDPOINT: must be an http or https URL")
	}

	for _, name := range []string{"OTEL_EXPORTER_OTLP_PROTOCOL", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"} {
		if getenv(name) == "grpc" {
			return nil, fmt.Errorf("%s: grpc is not available, choose http/json", name)
		}
	}

	t := newTracer(address, log)
	if t.sampler, err = parseSampler(getenv("OTEL_TRACES_SAMPLER"), getenv("OTEL_TRACES_SAMPLER_ARG")); err != nil {
		return nil, err
	}

	for _, name := range []string{"OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS"} {
		if err := eachPair(getenv(name), func(key, value string) { t.header.Set(key, value) }); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}

	service := "socle"
	if err := eachPair(getenv("OTEL_RESOURCE_ATTRIBUTES"), func(key, value string) {
		if key == "service.name" {
			service = value
		} else {
			t.resource = append(t.resource, Attribute{key, value})
		}
	}); err != nil {
		return nil, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	if name := getenv("OTEL_SERVICE_NAME"); name != "" {
		service = name
	}

	t.resource = append(t.resource, Attribute{"service.name", service}, Attribute{"service.version", version})

	return t, nil
}

// eachPair calls f for each pair of a list such as a=1,b=2 with percent-encoded values.
func eachPair(list string, f func(key, value string)) error {
	for pair := range strings.SplitSeq(list, ",") {
		if pair = strings.TrimSpace(pair); pair == "" {
			continue
		}

		key, value, ok := strings.Cut(pair, "=")
		value, err := url.PathUnescape(strings.TrimSpace(value))
		if key = strings.TrimSpace(key); !ok || err != nil || !isToken(key) || strings.ContainsAny(value, "\r\n\x00") {
			return fmt.Errorf("must be pairs such as name=value, separated by commas")
		}

		f(key, value)
	}

	return nil
}

// isToken reports whether a name can be that of a header.
func isToken(name string) bool {
	return name != "" && strings.Trim(strings.ToLower(name), "abcdefghijklmnopqrstuvwxyz0123456789-_.") == ""
}

// sampler decides which traces are exported.
type sampler struct {
	followParent bool
	threshold    uint64 // of 2^63: traces whose ID is below are sampled
}

const samplerRange = 1 << 63

// parseSampler returns the sampler of OpenTelemetry's name.
func parseSampler(name, argument string) (sampler, error) {
	if name == "" {
		name = "parentbased_always_on"
	}

	name, parent := strings.CutPrefix(name, "parentbased_")
	s := sampler{followParent: parent}
	switch name {
	case "always_on":
		s.threshold = samplerRange
	case "always_off":
	case "traceidratio":
		ratio := 1.0
		if argument != "" {
			var err error
			if ratio, err = strconv.ParseFloat(argument, 64); err != nil || !(ratio >= 0 && ratio <= 1) {
				return s, fmt.Errorf("OTEL_TRACES_SAMPLER_ARG: must be a number from 0 to 1")
			}
		}
		s.threshold = uint64(ratio * samplerRange)
	default:
		return s, fmt.Errorf("OTEL_TRACES_SAMPLER: must be always_on, always_off or traceidratio, " +
			"or one of these after parentbased_")
	}

	return s, nil
}

// sample reports whether a trace is sampled.
func (s sampler) sample(parent Parent, id [16]byte) bool {
	if s.followParent && !parent.IsZero() {
		return parent.Sampled
	}
	return binary.BigEndian.Uint64(id[8:])>>1 < s.threshold
}

func newTracer(address string, log *slog.Logger) *Tracer {
	return &Tracer{address: address, header: http.Header{}, log: log, spans: make(chan *Span, queueSize),
		client: &http.Client{Timeout: exportTimeout, CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		}}}
}
