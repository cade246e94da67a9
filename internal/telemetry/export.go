package telemetry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strconv"

	"go.opentelemetry.io/otel/exporters/otlp/otlplog/otlploggrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlplog/otlploghttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetricgrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/log"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/trace"
)

// Signals, by their names in environment variables.
const (
	signalTraces  = "TRACES"
	signalMetrics = "METRICS"
	signalLogs    = "LOGS"
)

const protocolGRPC = "grpc"

// readProtocols returns the exported signals' protocols.
func readProtocols() (map[string]string, error) {
	protocols := map[string]string{}
	if disabled, _ := strconv.ParseBool(os.Getenv("OTEL_SDK_DISABLED")); disabled {
		return protocols, nil
	}

	for _, signal := range []string{signalTraces, signalMetrics, signalLogs} {
		protocol, err := readProtocol(signal)
		if err != nil {
			return nil, err
		}
		if protocol != "" {
			protocols[signal] = protocol
		}
	}

	return protocols, nil
}

// readProtocol returns the protocol by which a signal is exported, or "" if it is not. The
// exporters read the other settings themselves.
func readProtocol(signal string) (string, error) {
	address := os.Getenv("OTEL_EXPORTER_OTLP_" + signal + "_ENDPOINT")
	if address = cmp.Or(address, os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT")); address == "" {
		return "", nil
	}

	switch name := "OTEL_" + signal + "_EXPORTER"; os.Getenv(name) {
	case "", "otlp":
	case "none":
		return "", nil
	default:
		return "", fmt.Errorf("%s: must be otlp or none", name)
	}

	u, err := url.Parse(address)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return "", errors.New("OTEL_EXPORTER_OTLP_ENDPOINT: must be an http or https URL")
	}

	protocol := os.Getenv("OTEL_EXPORTER_OTLP_" + signal + "_PROTOCOL")
	switch protocol = cmp.Or(protocol, os.Getenv("OTEL_EXPORTER_OTLP_PROTOCOL"), "http/protobuf"); protocol {
	case protocolGRPC, "http/protobuf", "http/json":
		return protocol, nil
	}

	return "", errors.New("OTEL_EXPORTER_OTLP_PROTOCOL: must be grpc, http/protobuf or http/json")
}

func newSpanExporter(ctx context.Context, protocol string) (trace.SpanExporter, error) {
	if protocol == protocolGRPC {
		return otlptracegrpc.New(ctx)
	}
	return otlptracehttp.New(ctx)
}

func newMetricExporter(ctx context.Context, protocol string) (metric.Exporter, error) {
	if protocol == protocolGRPC {
		return otlpmetricgrpc.New(ctx)
	}
	return otlpmetrichttp.New(ctx)
}

func newLogExporter(ctx context.Context, protocol string) (log.Exporter, error) {
	if protocol == protocolGRPC {
		return otlploggrpc.New(ctx)
	}
	return otlploghttp.New(ctx)
}
