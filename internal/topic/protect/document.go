package protect

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
)

// Limits of a policy. Source: quotas of message data protection in the SNS developer guide; the
// limit of statements is our own, since each costs time at every publish.
const (
	maxDocument   = 30_720 // bytes
	maxStatements = 20
	maxCustom     = 10
	maxRegex      = 200 // characters
	maxCustomName = 128 // characters
	// maxProgram bounds the compiled custom identifiers of a policy, in instructions: ten
	// patterns of 200 characters have about as many; a counted repetition has as many as its
	// count. The limit is our own.
	maxProgram = 2_500
)

// Version is the version of the language of policies.
const Version = "2021-06-01"

// logGroupPrefix is the prefix of the names of log groups for findings.
const logGroupPrefix = "/aws/vendedlogs/"

// document is the JSON form of a policy.
type document struct {
	Name          string
	Description   string
	Version       string
	Statement     []statementDocument
	Configuration struct {
		CustomDataIdentifier []struct{ Name, Regex string }
	}
}

type statementDocument struct {
	Sid            string
	DataDirection  string
	Principal      []string
	NotPrincipal   []string
	DataIdentifier []string
	Operation      struct {
		Audit      *auditDocument
		Deny       *struct{}
		Deidentify *struct {
			MaskConfig   *struct{ MaskWithCharacter *string }
			RedactConfig *struct{}
		}
	}
}

type auditDocument struct {
	SampleRate            json.RawMessage
	FindingsDestination   *destinationDocument
	NoFindingsDestination *destinationDocument
}

type destinationDocument struct {
	CloudWatchLogs *struct{ LogGroup string }
	Firehose       *struct{ DeliveryStream string }
	S3             *struct{ Bucket string }
}

// Parse parses a policy, and refuses one that cannot be enforced.
func Parse(text string) (*Policy, error) {
	p, err := Load(text)
	if err == nil && p.program > maxProgram {
		return nil, ErrProgram.With(maxProgram)
	}
	return p, err
}

// Load parses a policy that Parse, of this or an earlier version, has accepted.
func Load(text string) (*Policy, error) {
	if len(text) > maxDocument {
		return nil, ErrTooLong.With(maxDocument)
	}
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.DisallowUnknownFields()
	var doc document
	if err := decoder.Decode(&doc); err != nil {
		return nil, ErrJSON.With(err.Error())
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, ErrJSON.With("data after the document")
	}
	switch {
	case doc.Version != Version:
		return nil, ErrVersion.With(Version)
	case doc.Name == "":
		return nil, ErrLacks.With("Name")
	case len(doc.Statement) == 0:
		return nil, ErrLacks.With("Statement")
	case len(doc.Statement) > maxStatements:
		return nil, ErrTooManyParts.With(maxStatements)
	}
	detectors, err := doc.custom()
	if err != nil {
		return nil, err
	}
	p := &Policy{text: text}
	for _, d := range detectors {
		p.program += d.own.size()
	}
	for i := range doc.Statement {
		s, err := doc.Statement[i].compile(detectors)
		if err == nil && s.operation == audit && p.Audits() {
			err = ErrAudits
		}
		if err != nil {
			return nil, ErrStatement.With(i+1, err)
		}
		p.statements = append(p.statements, s)
	}
	return p, nil
}

// custom compiles the policy's own identifiers, by name.
func (doc *document) custom() (map[string]*detector, error) {
	all := map[string]*detector{}
	if len(doc.Configuration.CustomDataIdentifier) > maxCustom {
		return nil, ErrTooManyOwn.With(maxCustom)
	}
	for _, own := range doc.Configuration.CustomDataIdentifier {
		_, managed := identifiers[own.Name]
		if own.Name == "" || len(own.Name) > maxCustomName || strings.Trim(own.Name, nameCharacters) != "" || managed || all[own.Name] != nil {
			return nil, ErrOwnName
		}
		d, err := customDetector(own.Name, own.Regex)
		if err != nil {
			return nil, ErrOwnRegex.With(own.Name)
		}
		all[own.Name] = d
	}
	return all, nil
}

const nameCharacters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"

func (doc *statementDocument) compile(detectors map[string]*detector) (s statement, err error) {
	switch doc.DataDirection {
	case "Inbound":
	case "Outbound":
		s.outbound = true
	default:
		return s, ErrDirection
	}
	// A statement without principals would protect nobody.
	if (len(doc.Principal) == 0) == (len(doc.NotPrincipal) == 0) {
		return s, ErrPrincipals
	}
	s.principals, s.except = doc.Principal, len(doc.NotPrincipal) > 0
	if s.except {
		s.principals = doc.NotPrincipal
	}
	if len(doc.DataIdentifier) == 0 {
		return s, ErrStatementLacks.With("DataIdentifier")
	}
	for _, name := range doc.DataIdentifier {
		d, err := detectorOf(name, detectors)
		if err != nil {
			return s, err
		}
		if !slices.Contains(s.detectors, d) {
			s.detectors = append(s.detectors, d)
		}
	}
	return s, doc.operation(&s)
}

// detectorOf finds a managed identifier by its ARN, and a custom one by its name. Each is
// compiled once per policy.
func detectorOf(name string, detectors map[string]*detector) (*detector, error) {
	managed, isARN := managedName(name)
	if d := detectors[managed]; d != nil && d.managed == isARN {
		return d, nil
	}
	if id, ok := identifiers[managed]; ok && isARN {
		detectors[managed] = id.compile(managed)
		return detectors[managed], nil
	}
	if isARN && needsModel[managed] {
		return nil, ErrModel.With(managed)
	}
	return nil, ErrIdentifier.With(name)
}

// managedName is the name in an identifier's ARN. The region or the account is "aws" in
// documents, and AWS also accepts an ARN with a region.
func managedName(name string) (string, bool) {
	rest, ok := strings.CutPrefix(name, "arn:")
	parts := strings.SplitN(rest, ":", 5)
	if !ok || len(parts) != 5 || parts[1] != "dataprotection" {
		return name, false
	}
	id, ok := strings.CutPrefix(parts[4], "data-identifier/")
	return id, ok
}

func (doc *statementDocument) operation(s *statement) error {
	op := &doc.Operation
	switch {
	case op.Deny != nil && op.Audit == nil && op.Deidentify == nil:
		s.operation = deny
		return nil
	case op.Audit != nil && op.Deny == nil && op.Deidentify == nil:
		s.operation = audit
		if s.outbound {
			return ErrInboundOnly.With("Audit")
		}
		return op.Audit.compile(s)
	case op.Deidentify != nil && op.Deny == nil && op.Audit == nil:
	default:
		return ErrOperation
	}
	if s.outbound {
		return ErrInboundOnly.With("Deidentify")
	}
	mask, redacts := op.Deidentify.MaskConfig, op.Deidentify.RedactConfig
	if (mask == nil) == (redacts == nil) {
		return ErrDeidentify
	}
	s.operation = redact
	if mask == nil {
		return nil
	}
	if s.operation = maskData; mask.MaskWithCharacter == nil {
		return ErrMask
	}
	if c := *mask.MaskWithCharacter; len(c) != 1 || c[0] < ' ' || c[0] > '~' || strings.Contains("\"'+\\{}", c) {
		return ErrMask
	}
	s.mask = (*mask.MaskWithCharacter)[0]
	return nil
}

func (doc *auditDocument) compile(s *statement) (err error) {
	rate := string(bytes.Trim(doc.SampleRate, `"`))
	if s.sampleRate, err = strconv.Atoi(rate); err != nil || s.sampleRate < 0 || s.sampleRate > 99 {
		return ErrSampleRate
	}
	if s.findings, err = doc.FindingsDestination.compile(); err != nil {
		return err
	}
	if s.noFindings, err = doc.NoFindingsDestination.compile(); err != nil {
		return err
	}
	if doc.FindingsDestination == nil && doc.NoFindingsDestination == nil {
		return ErrStatementLacks.With("FindingsDestination")
	}
	return nil
}

// compile returns the log group of a destination, or "" for none.
func (doc *destinationDocument) compile() (logGroup string, err error) {
	switch {
	case doc == nil:
		return "", nil
	case doc.S3 != nil:
		return "", ErrDestination.With("S3")
	case doc.Firehose != nil:
		return "", ErrDestination.With("Firehose")
	case doc.CloudWatchLogs == nil:
		return "", ErrStatementLacks.With("CloudWatchLogs")
	}
	name := doc.CloudWatchLogs.LogGroup
	if !strings.HasPrefix(name, logGroupPrefix) || len(name) > 512 || strings.Trim(name, nameCharacters+"/.#") != "" {
		return "", ErrLogGroup.With(logGroupPrefix)
	}
	return name, nil
}
