package webauthn

// CreationOptions ask a browser for a new credential.
type CreationOptions struct {
	RP                 RPEntity     `json:"rp"`
	User               UserEntity   `json:"user"`
	Challenge          Bytes        `json:"challenge"`
	PubKeyCredParams   []Parameters `json:"pubKeyCredParams"`
	Timeout            int64        `json:"timeout"` // milliseconds
	ExcludeCredentials []Descriptor `json:"excludeCredentials"`
	Selection          Selection    `json:"authenticatorSelection"`
	Attestation        string       `json:"attestation"`
}

// RPEntity is the relying party as a person sees it.
type RPEntity struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// UserEntity is the user as a person sees them.
type UserEntity struct {
	ID          Bytes  `json:"id"`
	Name        string `json:"name"`
	DisplayName string `json:"displayName"`
}

// Parameters name an accepted algorithm.
type Parameters struct {
	Type string `json:"type"`
	Alg  int    `json:"alg"`
}

// Descriptor names a credential.
type Descriptor struct {
	Type       string   `json:"type"`
	ID         Bytes    `json:"id"`
	Transports []string `json:"transports,omitempty"`
}

// Selection selects authenticators.
type Selection struct {
	ResidentKey        string `json:"residentKey"`
	RequireResidentKey bool   `json:"requireResidentKey"`
	UserVerification   string `json:"userVerification"`
}

// RequestOptions ask a browser for an assertion.
type RequestOptions struct {
	RPID             string       `json:"rpId"`
	Challenge        Bytes        `json:"challenge"`
	Timeout          int64        `json:"timeout"` // milliseconds
	AllowCredentials []Descriptor `json:"allowCredentials"`
	UserVerification string       `json:"userVerification"`
}

// AllParameters returns all accepted algorithms' parameters.
func AllParameters() []Parameters {
	all := make([]Parameters, len(Algorithms))
	for i, algorithm := range Algorithms {
		all[i] = Parameters{Type: "public-key", Alg: algorithm}
	}

	return all
}
