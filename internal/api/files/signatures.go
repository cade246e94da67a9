package files

import (
	"context"
	"encoding/base64"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/account"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/operation"
	"github.com/socle-dev/socle/internal/projectdb"
	"github.com/socle-dev/socle/internal/token"
)

// A signed URL permits one method on one path until it expires, on behalf of the user who signed
// it, as long as that user has the right. The query parameter signature holds the payload and its
// MAC under an instance key.

// urlTerms is a signed URL's payload: the terms beyond method and path.
type urlTerms struct {
	Expires int64          `json:"e"` // Unix time in seconds
	User    uuid.UUID      `json:"u"`
	File    uuid.UUID      `json:"f,omitzero"` // the only readable file
	Picture *SignedPicture `json:"p,omitzero"` // the only readable variant; nil: the file and all variants
	Ticket  uuid.UUID      `json:"t,omitzero"` // upload, see [object.SignUpload]
	MaxSize int64          `json:"m,omitzero"` // bytes per upload; 0: no separate limit
}

type urlTermsKey struct{}

// urlTermsOf returns the payload from the request's signed URL, or nil.
func urlTermsOf(ctx context.Context) *urlTerms {
	terms, _ := ctx.Value(urlTermsKey{}).(*urlTerms)
	return terms
}

// sign returns a signed URL for a path on this server.
func (s *Server) sign(method, path string, terms urlTerms) string {
	text, err := json.Marshal(terms)
	if err != nil {
		panic("api: signature: " + err.Error())
	}

	payload := base64.RawURLEncoding.EncodeToString(text)
	signed := payload + "." + token.SignURL(s.SigningKey, method, path, payload)
	address := url.URL{Path: path, RawQuery: url.Values{operation.SignatureParam: {signed}}.Encode()}

	return s.PublicURL + address.String()
}

// AuthenticateSignature verifies the signature in the request's URL. It returns the user who signed
// it, and a context with the payload.
func (s *Server) AuthenticateSignature(
	ctx context.Context, r *http.Request,
) (context.Context, account.Caller, error) {
	refused := fault.New(fault.Unauthenticated, "the signature does not match the URL").WithCode("invalid_signature")
	method := r.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}

	payload, mac, _ := strings.Cut(r.URL.Query().Get(operation.SignatureParam), ".")

	project := operation.OptionalUUID(r.PathValue("projectUUID"))
	if !project.Valid || !token.VerifyURL(s.SigningKey, mac, method, r.URL.Path, payload) {
		return ctx, account.Caller{}, refused
	}

	text, err := base64.RawURLEncoding.DecodeString(payload)
	if err != nil {
		return ctx, account.Caller{}, err
	}

	terms := &urlTerms{}
	if err := json.Unmarshal(text, terms); err != nil {
		return ctx, account.Caller{}, err
	}

	if time.Now().Unix() >= terms.Expires {
		return ctx, account.Caller{}, fault.New(fault.Unauthenticated, "the signed URL has expired").
			WithCode("signature_expired")
	}

	c, err := s.Accounts.AuthenticateSigner(ctx, terms.User, project.UUID)
	return context.WithValue(ctx, urlTermsKey{}, terms), c, err
}

// filePath returns the path for reading and writing a file by name.
func filePath(p *projectdb.Project, container uuid.UUID, name string) string {
	return "/files/" + p.UUID.String() + "/" + container.String() + "/" + name
}
