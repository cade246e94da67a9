package httprequest

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/fair"
	"github.com/socle-dev/socle/internal/outbound"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/projectdb"
)

const (
	// outcomeAge is how long an outcome is kept. The view of outcomes repeats it.
	outcomeAge = 6 * time.Hour
	// Bounds of the outcomes of a project. The oldest are removed first, once per trimInterval
	// outcomes, so there can be that many more.
	maxOutcomes     = 10_000
	maxOutcomeBytes = 32 << 20
	trimInterval    = 64
)

// outcome is what became of a request.
type outcome struct {
	Status       *int // nil: no response
	ContentType  string
	Headers      map[string]string
	Content      string
	TimedOut     bool
	ErrorMessage string // "": none
}

func outcomeOf(r request, res outbound.Response, err error) outcome {
	if err != nil {
		text, timedOut := explain(r, err)
		return outcome{TimedOut: timedOut, ErrorMessage: text}
	}

	o := outcome{Status: &res.Status, ContentType: clean(res.Header.Get("Content-Type")),
		Headers: map[string]string{}, Content: clean(string(res.Body))}
	for name, values := range res.Header {
		o.Headers[strings.ToLower(clean(name))] = clean(strings.Join(values, ", "))
	}

	return o
}

// explain words a failure for the developer. It tells nothing about networks that requests may not
// reach.
func explain(r request, err error) (text string, timedOut bool) {
	_, isName := errors.AsType[*net.DNSError](err)
	_, isCertificate := errors.AsType[*tls.CertificateVerificationError](err)
	_, isAuthority := errors.AsType[x509.UnknownAuthorityError](err)
	_, isConnection := errors.AsType[*net.OpError](err)

	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Sprintf("Timeout of %d ms reached", r.TimeoutMilliseconds), true
	case errors.Is(err, outbound.ErrNetwork):
		return "Requests may not reach this address: it is not public, or needs https://", false
	case errors.Is(err, outbound.ErrRedirect):
		return "The response redirects to another host, or too often", false
	case errors.Is(err, outbound.ErrTooLarge):
		return fmt.Sprintf("The response is larger than %d bytes", outbound.MaxResponse), false
	case errors.Is(err, fair.ErrBusy):
		return "Cancelled: too many requests of this account were in flight, and another one needed the place", false
	case errors.Is(err, errStopped):
		return "Cancelled: the server has stopped", false
	case isName:
		return "Couldn't resolve host name", false
	case isCertificate, isAuthority:
		return "The certificate of the server is not valid", false
	case isConnection:
		return "Couldn't connect to server", false
	}

	return "The server did not answer with a response of HTTP", false
}

// clean returns a text that PostgreSQL can store.
func clean(text string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(text, "�"), "\x00", "�")
}

// store stores the outcome of a request.
func store(ctx context.Context, p *projectdb.Project, id int64, o outcome) error {
	args := pgx.StrictNamedArgs{"id": id, "status": o.Status, "error": nil, "type": nil, "headers": nil, "content": nil,
		"timedOut": o.TimedOut, "size": len(o.ErrorMessage)}
	if o.ErrorMessage != "" {
		args["error"] = o.ErrorMessage
	}
	if o.Status != nil {
		headers, _ := json.Marshal(o.Headers) // texts have no error
		args["type"], args["headers"], args["content"] = o.ContentType, headers, o.Content
		args["size"] = len(headers) + len(o.Content)
	}

	_, err := pg.Exec(ctx, p.Trusted(), `
		insert into socle.http_responses (id, status_code, content_type, headers, content, timed_out, error_msg, size)
		values (@id, @status, @type, @headers, @content, @timedOut, @error, @size)`, args)
	if err != nil || id%trimInterval != 0 {
		return err
	}

	return trim(ctx, p)
}

// trim removes the outcomes that are too old, too many or too large together.
func trim(ctx context.Context, p *projectdb.Project) error {
	_, err := pg.Exec(ctx, p.Trusted(), `
		delete from socle.http_responses r using (
			select ctid, created, row_number() over newest as count, sum(size) over newest as bytes
			from socle.http_responses window newest as (order by created desc, id desc rows unbounded preceding)
		) o
		where r.ctid = o.ctid and (o.count > @count or o.bytes > @bytes
			or o.created < now() - make_interval(secs => @seconds::float8))`,
		pgx.StrictNamedArgs{"count": maxOutcomes, "bytes": maxOutcomeBytes, "seconds": outcomeAge.Seconds()})
	return err
}

// Subject returns the subject of requests: a backup has none of their rows.
func Subject() projectdb.Subject { return projectdb.Subject{Sweep: trim} }
