package telemetry

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	logs "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	metrics "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	traces "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
)

// receiver decodes exports, as a collector does: by gRPC, and as protobuf by HTTP.
type receiver struct {
	grpcURL, httpURL string

	mu             sync.Mutex
	received       map[string]string // text of all requests by signal
	authorizations map[string]bool   // headers of all requests
}

// add adds a request.
func (r *receiver) add(signal, authorization string, request proto.Message) {
	r.mu.Lock()
	defer r.mu.Unlock()

	r.received[signal] += request.(interface{ String() string }).String()
	r.authorizations[authorization] = true
}

type (
	traceService struct {
		traces.UnimplementedTraceServiceServer
		*receiver
	}
	metricsService struct {
		metrics.UnimplementedMetricsServiceServer
		*receiver
	}
	logsService struct {
		logs.UnimplementedLogsServiceServer
		*receiver
	}
)

// Export implements [traces.TraceServiceServer].
func (s traceService) Export(
	ctx context.Context, in *traces.ExportTraceServiceRequest,
) (*traces.ExportTraceServiceResponse, error) {
	s.add(signalTraces, authorizationOf(ctx), in)
	return &traces.ExportTraceServiceResponse{}, nil
}

// Export implements [metrics.MetricsServiceServer].
func (s metricsService) Export(
	ctx context.Context, in *metrics.ExportMetricsServiceRequest,
) (*metrics.ExportMetricsServiceResponse, error) {
	s.add(signalMetrics, authorizationOf(ctx), in)
	return &metrics.ExportMetricsServiceResponse{}, nil
}

// Export implements [logs.LogsServiceServer].
func (s logsService) Export(
	ctx context.Context, in *logs.ExportLogsServiceRequest,
) (*logs.ExportLogsServiceResponse, error) {
	s.add(signalLogs, authorizationOf(ctx), in)
	return &logs.ExportLogsServiceResponse{}, nil
}

func authorizationOf(ctx context.Context) string {
	if values := metadata.ValueFromIncomingContext(ctx, "authorization"); len(values) == 1 {
		return values[0]
	}
	return ""
}

// ServeHTTP takes a request by HTTP.
func (r *receiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	signal, in := "", proto.Message(nil)
	switch request.URL.Path {
	case "/v1/traces":
		signal, in = signalTraces, &traces.ExportTraceServiceRequest{}
	case "/v1/metrics":
		signal, in = signalMetrics, &metrics.ExportMetricsServiceRequest{}
	case "/v1/logs":
		signal, in = signalLogs, &logs.ExportLogsServiceRequest{}
	default:
		http.NotFound(w, request)
		return
	}

	body, err := io.ReadAll(request.Body)
	if err == nil {
		err = proto.Unmarshal(body, in)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}

	r.add(signal, request.Header.Get("Authorization"), in)
}

// newReceiver starts a receiver. The test's cleanup stops it.
func newReceiver(t *testing.T) *receiver {
	t.Helper()

	r := &receiver{received: map[string]string{}, authorizations: map[string]bool{}}

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}

	services := grpc.NewServer()
	traces.RegisterTraceServiceServer(services, traceService{receiver: r})
	metrics.RegisterMetricsServiceServer(services, metricsService{receiver: r})
	logs.RegisterLogsServiceServer(services, logsService{receiver: r})
	ended := make(chan error, 1)
	go func() { ended <- services.Serve(listener) }()
	t.Cleanup(func() {
		services.Stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})

	web := httptest.NewServer(r)
	t.Cleanup(web.Close)
	r.grpcURL, r.httpURL = "http://"+listener.Addr().String(), web.URL

	return r
}
