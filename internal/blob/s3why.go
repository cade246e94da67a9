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

// credentialsOf returns what requests are signed with: the keys that are set, or what Amazon's tools find by themselves, which is
// renewed before it expires.
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

	// reads the environment and files, and asks nobody
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

// noCredentials says that the chain has found nothing to sign a request with.
type noCredentials struct{ err error }

func (e *noCredentials) Error() string { return "no credentials: " + e.err.Error() }
func (e *noCredentials) Unwrap() error { return e.err }

// Mistake is what is wrong with the settings of a storage, in a sentence for its operator: waiting does not mend it.
type Mistake struct {
	sentence string
	err      error
}

func (e *Mistake) Error() string { return e.sentence }

// Unwrap returns what the service said.
func (e *Mistake) Unwrap() error { return e.err }

// explained says what an operator can do about a request that failed.
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
	case hasCode(err, "InvalidAccessKeyId"), hasCode(err, "XAdminUserNotFound"): // as Amazon says it, as versitygw does
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
