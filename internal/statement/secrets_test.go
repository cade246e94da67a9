package statement

import "testing"

func TestWithoutSecrets(t *testing.T) {
	t.Parallel()

	for text, want := range map[string]string{
		`select 'kept' -- as it is`:                                                   `select 'kept' -- as it is`,
		`select vault.create_secret('s3cret', name => 'a') where 1 = $1`:              `select vault.create_secret('…', name => '…') where 1 = $1`,
		`select "Vault".create_secret(E's3\'cret', $$s3cret$$) -- s3cret`:             `select "Vault".create_secret('…', '…') '…'`,
		`do $x$ begin perform vault.create_secret('s3cret'); end $x$; select 1`:       `do '…'; select 1`,
		`insert into vault.secrets (secret) values (U&'s3cret'), ('s3cret unfinished`: `insert into vault.secrets (secret) values ('…'), ('…'`,
	} {
		if got := withoutSecrets(text); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}
