package api

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"

	"socle/internal/fault"
	"socle/internal/platform"
	"socle/internal/tenant"
	"socle/internal/token"
)

// A signed URL lets whoever has it do one thing for a time: what it names, by the one method, on behalf of the user who signed it. That user must still be
// allowed to. The signature is the parameter of this name: what was signed, and its MAC under a key of the instance.

const signatureParam = "signature"

// signed is what a signed URL says beside its path.
type signed struct {
	Expires int64          `json:"e"` // seconds since 1970
	User    uuid.UUID      `json:"u"`
	File    uuid.UUID      `json:"f,omitzero"` // the one that may be read
	Picture *SignedPicture `json:"p,omitzero"` // the one variant of it that may be read; nil: all, and the file itself
	Ticket  uuid.UUID      `json:"t,omitzero"` // of the upload, see [object.SignUpload]
	MaxSize int64          `json:"m,omitzero"` // bytes of the upload
}

type signedKey struct{}

// signedOf returns what the request's URL was signed for; nil if it was not.
func signedOf(ctx context.Context) *signed {
	of, _ := ctx.Value(signedKey{}).(*signed)
	return of
}

// orSigned is a for an operation that whoever has a signed URL of it may call too.
func (a Access) orSigned() Access { a.signed = true; return a }

// bySignature reports whether a request comes with a signature that counts.
func (a Access) bySignature(r *http.Request) bool {
	return a.signed && r.URL.Query().Has(signatureParam)
}

// sign returns the address of a path of this server with a signature.
func (s *Server) sign(method, path string, of signed) string {
	text, err := json.Marshal(of)
	if err != nil {
		panic("api: signature: " + err.Error())
	}

	payload := base64.RawURLEncoding.EncodeToString(text)
	address := url.URL{
		Path: path, RawQuery: url.Values{signatureParam: {payload + "." + s.mac(method, path, payload)}}.Encode(),
	}

	return s.publicURL + address.String()
}

// mac binds a payload to a method and a path, which names the project.
func (s *Server) mac(method, path, payload string) string {
	return base64.RawURLEncoding.EncodeToString(token.MAC(s.signingKey, []byte(method), []byte(path), []byte(payload)))
}

// formerMAC is what the release before signed with. Such URLs live a week at most.
func (s *Server) formerMAC(method, path, payload string) string {
	h := hmac.New(sha256.New, s.signingKey)
	h.Write([]byte(method + "\n" + path + "\n" + payload))

	return base64.RawURLEncoding.EncodeToString(h.Sum(nil))
}

// isSignature reports whether a MAC binds a payload to a method and a path. A former one is good where it has one reading.
func (s *Server) isSignature(mac, method, path, payload string) bool {
	if hmac.Equal([]byte(mac), []byte(s.mac(method, path, payload))) {
		return true
	}

	return !strings.ContainsAny(path+payload, "\r\n") &&
		hmac.Equal([]byte(mac), []byte(s.formerMAC(method, path, payload)))
}

// signer returns who signed a request's URL, and what for.
func (s *Server) signer(ctx context.Context, r *http.Request) (*signed, platform.Caller, error) {
	refused := fault.New(fault.Unauthenticated, "the signature is not that of this URL").WithCode("invalid_signature")
	method := r.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}

	payload, mac, _ := strings.Cut(r.URL.Query().Get(signatureParam), ".")

	project := optionalUUID(r.PathValue("projectUUID"))
	if !project.Valid || !s.isSignature(mac, method, r.URL.Path, payload) {
		return nil, platform.Caller{}, refused
	}

	text, err := base64.RawURLEncoding.DecodeString(payload)
	if err != nil {
		return nil, platform.Caller{}, err
	}

	of := &signed{}
	if err := json.Unmarshal(text, of); err != nil {
		return nil, platform.Caller{}, err
	}

	if time.Now().Unix() >= of.Expires {
		return nil, platform.Caller{}, fault.New(fault.Unauthenticated, "the signed URL has expired").
			WithCode("signature_expired")
	}

	c, err := s.platform.AuthenticateSigner(ctx, of.User, project.UUID)
	return of, c, err
}

// filePath is where a file is read and written by its name.
func filePath(p *tenant.Project, container uuid.UUID, name string) string {
	return "/files/" + p.UUID.String() + "/" + container.String() + "/" + name
}
