package operation

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/socle-dev/socle/internal/httpx"
)

const streamBuffer = 64 << 10 // bytes

// ClientWriteTimeout is how long a client may take to accept one piece of a response.
const ClientWriteTimeout = 60 * time.Second

// Stream is a response whose bytes are made while the client reads them.
type Stream struct {
	Errors  []int                                        // the operation's failure statuses
	Headers func(http.Header)                            // sets the headers before the first byte
	Write   func(ctx context.Context, w io.Writer) error // writes the bytes
	Close   func()                                       // releases what Write reads
}

// ServeHTTP writes the bytes, and renews the write deadline with each piece. A failure before the
// first piece gets an error response. A later one aborts the connection, so that a truncated
// response does not look complete.
func (s Stream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer s.Close()

	out := &streamWriter{ResponseWriter: w, headers: s.Headers}
	buffer := bufio.NewWriterSize(out, streamBuffer)
	err := s.Write(r.Context(), buffer)
	if err == nil {
		err = buffer.Flush()
	}

	switch {
	case err == nil && !out.hasStarted: // no bytes
		s.Headers(w.Header())
		w.WriteHeader(http.StatusOK)
	case err != nil && !out.hasStarted:
		WriteFailure(w, r, err, s.Errors)
	case err != nil:
		httpx.From(r.Context()).Err = err
		panic(http.ErrAbortHandler)
	}
}

// streamWriter is a response that renews its write deadline with each write, and sets its headers
// before the first one.
type streamWriter struct {
	http.ResponseWriter
	headers    func(http.Header)
	hasStarted bool
}

func (w *streamWriter) Write(b []byte) (int, error) {
	if !w.hasStarted {
		w.hasStarted = true
		w.headers(w.Header())
	}

	deadline := time.Now().Add(ClientWriteTimeout)
	if err := http.NewResponseController(w.ResponseWriter).SetWriteDeadline(deadline); err != nil &&
		!errors.Is(err, http.ErrNotSupported) {
		return 0, err
	}

	return w.ResponseWriter.Write(b)
}
