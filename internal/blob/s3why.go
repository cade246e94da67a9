package blob

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"

	"socle/internal/config"
)

// credentialsOf returns the credentials of requests: the configured keys, or those of the AWS
// default chain, which are renewed before they expire.
func credentialsOf(c config.S3) (aws.CredentialsProvider, error) {
	if c.AccessKey != "" {
		return aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{
				AccessKeyID:     string(c.AccessKey),
				SecretAccessKey: string(c.SecretKey),
				SessionToken:    string(c.SessionToken),
			}, nil
		}), nil
	}

	// reads the environment and files, without network access
	found, err := awsconfig.LoadDefaultConfig(context.Background(), awsconfig.WithRegion(c.Region))
	if err != nil {
		return nil, fmt.Errorf("credentials for the storage: %w", err)
	}

	return aws.NewCredentialsCache(aws.CredentialsProviderFunc(func(ctx context.Context) (aws.Credentials, error) {
		held, err := found.Credentials.Retrieve(ctx)
		if err != nil {
			return held, &noCredentials{err}
		}

		return held, nil
	})), nil
}

// noCredentials reports that the default chain found no credentials.
type noCredentials struct{ err error }

func (e *noCredentials) Error() string { return "no credentials: " + e.err.Error() }
func (e *noCredentials) Unwrap() error { return e.err }

// Mistake is an error of the storage's configuration with a message for the operator. Retrying does
// not help.
type Mistake struct {
	sentence string
	err      error
}

func (e *Mistake) Error() string { return e.sentence }

// Unwrap returns the error of the service.
func (e *Mistake) Unwrap() error { return e.err }

// explained turns the error of a request into one that tells the operator how to correct it.
func (b *bucket) explained(err error) error {
	if err == nil {
		return nil
	}

	if _, none := errors.AsType[*noCredentials](err); none {
		return &Mistake{
			"no credentials for the storage were found: set SOCLE_S3_ACCESS_KEY and SOCLE_S3_SECRET_KEY, or run where a role of the machine or the environment gives some", err,
		}
	}

	answer, answered := errors.AsType[*awshttp.ResponseError](err)
	if !answered || answer.Response == nil {
		return fmt.Errorf("no answer from %s, where the bucket %s should be: %w", b.where, *b.name, err)
	}

	mistake := func(format string, args ...any) error { return &Mistake{fmt.Sprintf(format, args...), err} }
	status := answer.HTTPStatusCode()
	region := answer.Response.Header.Get("X-Amz-Bucket-Region")
	switch {
	case hasCode(err, "AuthorizationHeaderMalformed"), hasCode(err, "PermanentRedirect"),
		hasCode(err, "IllegalLocationConstraintException"), status/100 == 3:
		if region == "" {
			region = "…"
		}

		return mistake("the bucket %s is in another region than %s: set region=%s in SOCLE_STORAGE_URL", *b.name,
			b.client.Options().Region, region)
	case hasCode(err, "InvalidAccessKeyId"), hasCode(err, "XAdminUserNotFound"): // the codes of Amazon S3 and of versitygw
		return mistake("%s does not know the access key: correct SOCLE_S3_ACCESS_KEY", b.where)
	case hasCode(err, "SignatureDoesNotMatch"):
		return mistake("the secret key is not the one of the access key: correct SOCLE_S3_SECRET_KEY")
	case hasCode(err, "ExpiredToken"), hasCode(err, "InvalidToken"):
		return mistake(
			"the session token of the storage's keys has expired, or is another's: renew SOCLE_S3_SESSION_TOKEN",
		)
	case hasCode(err, "NoSuchBucket"), status == http.StatusNotFound:
		return mistake("there is no bucket %s at %s: make it, or correct SOCLE_STORAGE_URL", *b.name, b.where)
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return mistake("the keys may not put and delete objects of the bucket %s: give them the rights", *b.name)
	}

	return fmt.Errorf("%s answers %d: %w", b.where, status, err)
}
