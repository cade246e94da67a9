package runtime

import (
	"context"
	"io"
	"net/http"
)

// MaxCodeCache bounds a code cache in bytes. A module with a larger one has none.
const MaxCodeCache = 4 << 20

// Compile returns V8's code cache of a module, in the place of [Process.Load]. Nothing of the
// module runs, so the module can't forge its cache. The result is empty if V8 made no cache, also
// for a module that does not compile. The process ends afterwards.
func (p *Process) Compile(ctx context.Context, code []byte) ([]byte, error) {
	p.compiling.Store(true)
	if _, err := p.send(Module{Code: code}, map[string]any{"compile": true}); err != nil {
		return nil, err
	}

	select {
	case cache := <-p.compiled:
		return cache, nil
	case <-p.Exited():
		select {
		case cache := <-p.compiled: // its last words
			return cache, nil
		default:
			return nil, nil
		}
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// takeCodeCache takes the message of a process that compiles.
func (p *Process) takeCodeCache(w http.ResponseWriter, r *http.Request) {
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MaxCodeCache))
	if err != nil || r.URL.Path != "/compiled" {
		data = nil
	}

	p.once.Do(func() { p.compiled <- data })
	w.WriteHeader(http.StatusNoContent)
}
