// Package vault is a stub of the client that versitygw reads accounts from Vault with, see package
// main.
package vault

import (
	"context"
	"errors"
	"time"

	"github.com/hashicorp/vault-client-go/schema"
)

type ClientOption struct{}

func WithAddress(string) (o ClientOption)               { return o }
func WithRequestTimeout(time.Duration) (o ClientOption) { return o }
func WithTLS(TLSConfiguration) (o ClientOption)         { return o }

type TLSConfiguration struct {
	ServerCertificate, ClientCertificate, ClientCertificateKey struct{ FromBytes []byte }
}

type RequestOption struct{}

func WithMountPath(string) (o RequestOption) { return o }
func WithNamespace(string) (o RequestOption) { return o }

type Client struct {
	Auth    Auth
	Secrets Secrets
}

func New(...ClientOption) (*Client, error) { return nil, errors.ErrUnsupported }

func (*Client) SetToken(string) error { return errors.ErrUnsupported }

func IsErrorStatus(error, int) bool { return false }

type Response struct {
	Auth *struct{ ClientToken string }
	Data struct {
		Data, Metadata map[string]any
		Keys           []string
	}
}

type Auth struct{}

func (Auth) AppRoleLogin(context.Context, schema.AppRoleLoginRequest, ...RequestOption) (*Response, error) {
	return nil, errors.ErrUnsupported
}

type Secrets struct{}

func (Secrets) KvV2Read(context.Context, string, ...RequestOption) (*Response, error) {
	return nil, errors.ErrUnsupported
}

func (Secrets) KvV2List(context.Context, string, ...RequestOption) (*Response, error) {
	return nil, errors.ErrUnsupported
}

func (Secrets) KvV2Write(context.Context, string, schema.KvV2WriteRequest, ...RequestOption) (*Response, error) {
	return nil, errors.ErrUnsupported
}

func (Secrets) KvV2WriteMetadata(
	context.Context, string, schema.KvV2WriteMetadataRequest, ...RequestOption,
) (*Response, error) {
	return nil, errors.ErrUnsupported
}

func (Secrets) KvV2DeleteMetadataAndAllVersions(context.Context, string, ...RequestOption) (*Response, error) {
	return nil, errors.ErrUnsupported
}
