package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/socle-dev/socle/internal/certificate"
	"github.com/socle-dev/socle/internal/config"
	"github.com/socle-dev/socle/internal/httpx"
	"github.com/socle-dev/socle/internal/operation"
	"github.com/socle-dev/socle/internal/token"
)

// checkCertificates reads the certificate files, so that a mistake in them creates nothing.
func checkCertificates(c config.Config) error {
	for _, pair := range [][2]string{{c.TLSCert, c.TLSKey}, {c.PostgresTLSCert, c.PostgresTLSKey}} {
		if pair[0] == "" {
			continue
		}
		if _, err := tls.LoadX509KeyPair(pair[0], pair[1]); err != nil {
			return fmt.Errorf("certificate: %w", err)
		}
	}

	return nil
}

// openCertificate returns the certificate source, nil for plain HTTP.
func (s *Server) openCertificate(c config.Config) (certificate.Source, error) {
	if c.TLSCert != "" {
		return certificate.OpenFiles(c.TLSCert, c.TLSKey, s.log)
	}
	if !c.TLSAuto {
		return nil, nil
	}

	public, err := url.Parse(c.PublicURL)
	if err != nil {
		return nil, err
	}

	return certificate.NewAuto(certificate.AutoConfig{
		Host: strings.ToLower(public.Hostname()), Address: s.listener.Addr().(*net.TCPAddr),
		Directory: c.ACMEDirectory,
		Pool:      s.database.Pool, Store: s.database.Store, Key: token.Derive(s.secret, "certificates"), Log: s.log,
	}), nil
}

// redirect answers plain HTTP with the HTTPS address. Without an address it does nothing.
type redirect struct {
	listener net.Listener
	http     *http.Server
}

func newRedirect(c config.Config) (*redirect, error) {
	if c.RedirectAddr == "" {
		return &redirect{}, nil
	}

	public, err := url.Parse(c.PublicURL)
	if err != nil {
		return nil, err
	}

	listener, err := net.Listen("tcp", c.RedirectAddr)
	if err != nil {
		return nil, fmt.Errorf("listen for redirects: %w", err)
	}

	r := &redirect{listener: listener, http: &http.Server{
		Handler:           redirectTo(public.Scheme + "://" + public.Host),
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      10 * time.Second,
		MaxHeaderBytes:    64 << 10,
	}}
	r.http.SetKeepAlivesEnabled(false) // one request per connection, see httpx.StrictListener

	return r, nil
}

// redirectTo redirects reads to the same path on another host. It refuses other requests: a client
// that sends credentials in the clear must not go on unnoticed.
func redirectTo(base string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			operation.RespondFailure(w, r, http.StatusForbidden, "https_required", "use "+base)
			return
		}

		w.Header().Set("Location", base+r.URL.RequestURI())
		w.WriteHeader(http.StatusPermanentRedirect)
	})
}

// run redirects until ctx ends.
func (r *redirect) run(ctx context.Context) error {
	if r.listener == nil {
		return nil
	}

	stop := context.AfterFunc(ctx, func() { _ = r.http.Close() })
	defer stop()

	if err := r.http.Serve(httpx.StrictListener(r.listener)); !errors.Is(err, http.ErrServerClosed) {
		return err
	}

	return nil
}
