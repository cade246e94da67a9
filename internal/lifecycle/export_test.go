package lifecycle

// PolicyBatch is [policyBatch].
const PolicyBatch = policyBatch

// Template is [template].
func Template() string { return template() }

// ProvisionSteps is [Databases.provisionSteps].
func (d Databases) ProvisionSteps() []provisionStep { return d.provisionSteps() }
