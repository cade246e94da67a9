module github.com/hashicorp/vault-client-go

go 1.26.0
