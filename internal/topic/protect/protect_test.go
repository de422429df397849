package protect

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"godwit.dev/godwit/internal/fault"
)

// policyOf is a policy of one statement about the identifier.
func policyOf(t testing.TB, id, direction, operation string) *Policy {
	t.Helper()
	p, err := Parse(documentOf(id, direction, operation))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func documentOf(id, direction, operation string) string {
	return fmt.Sprintf(`{"Name":"n","Version":"2021-06-01","Statement":[{"DataDirection":%q,"Principal":["*"],
		"DataIdentifier":["arn:aws:dataprotection::aws:data-identifier/%s"],"Operation":%s}]}`, direction, id, operation)
}

// Each identifier finds the numbers that are published as examples of its form, and leaves
// those whose checksum or keyword is missing.
func TestIdentifiers(t *testing.T) {
	cases := map[string]struct{ found, left string }{
		"AwsSecretKey":                         {"aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "sum wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"},
		"OpenSshPrivateKey":                    {"-----BEGIN OPENSSH PRIVATE KEY-----\nb3Bl\n-----END OPENSSH PRIVATE KEY-----", "-----BEGIN OPENSSH PUBLIC KEY-----"},
		"PgpPrivateKey":                        {"-----BEGIN PGP PRIVATE KEY BLOCK-----\nlQHYB\n-----END PGP PRIVATE KEY BLOCK-----", "-----BEGIN PGP PUBLIC KEY BLOCK-----"},
		"PkcsPrivateKey":                       {"-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----", "-----BEGIN CERTIFICATE-----"},
		"PuttyPrivateKey":                      {"PuTTY-User-Key-File-2: ssh-rsa\nEncryption: none", "PuTTY"},
		"IpAddress":                            {"from 198.51.100.7.", "version 1.2.3.4.5 and 999.1.1.1"},
		"LatLong":                              {"location: 47.3769, 8.5417", "location: 97.3769, 8.5417"},
		"BankAccountNumber-DE":                 {"IBAN DE89 3704 0044 0532 0130 00", "IBAN DE88 3704 0044 0532 0130 00"},
		"BankAccountNumber-ES":                 {"iban ES9121000418450200051332", "ES9121000418450200051332"},
		"BankAccountNumber-FR":                 {"iban: FR1420041010050500013M02606", "iban: FR1520041010050500013M02606"},
		"BankAccountNumber-GB":                 {"account GB29NWBK60161331926819", "account GB28NWBK60161331926819"},
		"BankAccountNumber-IT":                 {"conto IT60X0542811101000000123456", "conto IT61X0542811101000000123456"},
		"BankAccountNumber-US":                 {"checking account 1234567890", "order 1234567890"},
		"CreditCardNumber":                     {"visa 4111 1111 1111 1111", "visa 4111 1111 1111 1112"},
		"CreditCardExpiration":                 {"expires 04/27", "page 04/27"},
		"CreditCardSecurityCode":               {"cvv: 123", "room 123"},
		"DrugEnforcementAgencyNumber-US":       {"DEA number AB1234563", "DEA number AB1234567"},
		"HealthcareProcedureCode-US":           {"HCPCS J1100", "part J1100"},
		"HealthInsuranceCardNumber-EU":         {"EHIC 80756000000000000001", "number 80756000000000000001"},
		"HealthInsuranceClaimNumber-US":        {"hicn 123-45-6789-A", "number 123-45-6789-A"},
		"HealthInsuranceNumber-FR":             {"carte vitale 2 55 08 14 168 025 38", "carte vitale 2 55 08 14 168 025 39"},
		"MedicareBeneficiaryNumber-US":         {"MBI 1EG4-TE5-MK73", "1EG4-TE5-MK73"},
		"NationalDrugCode-US":                  {"NDC 0777-3105-02", "0777-3105-02"},
		"NationalProviderId-US":                {"NPI 1234567893", "NPI 1234567890"},
		"NhsNumber-GB":                         {"NHS 943 476 5919", "NHS 943 476 5918"},
		"PersonalHealthNumber-CA":              {"PHN 9123 456 789", "9123 456 789"},
		"CepCode-BR":                           {"CEP 01310-100", "01310-100"},
		"CpfCode-BR":                           {"CPF 529.982.247-25", "CPF 529.982.247-26"},
		"RgNumber-BR":                          {"RG 12.345.678-9", "12.345.678-9"},
		"DriversLicense-CA":                    {"driving licence A1234-56789-01234", "A1234-56789-01234"},
		"DriversLicense-DE":                    {"Führerschein B072RRE2I55", "B072RRE2I55"},
		"DriversLicense-ES":                    {"permiso de conducir 12345678Z", "permiso de conducir 12345678A"},
		"DriversLicense-FR":                    {"permis de conduire 940992310285", "940992310285"},
		"DriversLicense-GB":                    {"driving licence MORGA657054SM9IJ", "MORGA657054SM9IJ"},
		"DriversLicense-IT":                    {"patente AB1234567C", "AB1234567C"},
		"DriversLicense-US":                    {"driver's license D1234567", "D1234567"},
		"ElectoralRollNumber-GB":               {"electoral roll number AB-123", "AB-123"},
		"EmailAddress":                         {"write to jane.doe+x@mail.example.com today", "write to jane@localhost @example.com"},
		"IndividualTaxIdentificationNumber-US": {"ITIN 900-70-0000", "ITIN 900-49-0000"},
		"InseeCode-FR":                         {"sécurité sociale 255081416802538", "sécurité sociale 255081416802539"},
		"NationalIdentificationNumber-DE":      {"Personalausweis L01X00T471", "L01X00T471"},
		"NationalIdentificationNumber-ES":      {"DNI 12345678Z", "DNI 12345678A"},
		"NationalIdentificationNumber-IT":      {"codice fiscale RSSMRA85T10A562S", "codice fiscale RSSMRA85T10A562T"},
		"NieNumber-ES":                         {"NIE X1234567L", "NIE X1234567M"},
		"NifNumber-ES":                         {"NIF 12345678Z", "NIF 12345678Y"},
		"PassportNumber-CA":                    {"passport AB123456", "AB123456"},
		"PassportNumber-DE":                    {"Reisepass C01X00T47", "C01X00T47"},
		"PassportNumber-ES":                    {"pasaporte AAA123456", "AAA123456"},
		"PassportNumber-FR":                    {"passeport 12AB34567", "12AB34567"},
		"PassportNumber-GB":                    {"passport no 123456789", "123456789"},
		"PassportNumber-IT":                    {"passaporto AA1234567", "AA1234567"},
		"PassportNumber-US":                    {"passport number 123456789", "order 123456789"},
		"PermanentResidenceNumber-CA":          {"PR number AB1234567", "AB1234567"},
		"PhoneNumber-BR":                       {"telefone (11) 91234-5678", "(11) 91234-5678"},
		"PhoneNumber-DE":                       {"Telefon +49 30 1234567", "+49 30 1234567"},
		"PhoneNumber-ES":                       {"móvil +34 612 345 678", "612 345 678"},
		"PhoneNumber-FR":                       {"téléphone 01 23 45 67 89", "01 23 45 67 89"},
		"PhoneNumber-GB":                       {"mobile +44 7911 123456", "+44 7911 123456"},
		"PhoneNumber-IT":                       {"cellulare 347 123 4567", "347 123 4567"},
		"PhoneNumber-US":                       {"phone (415) 555-2671", "(415) 555-2671"},
		"PostalCode-CA":                        {"postal code K1A 0B1", "K1A 0B1"},
		"SocialInsuranceNumber-CA":             {"SIN 046 454 286", "SIN 046 454 287"},
		"Ssn-ES":                               {"seguridad social 28/12345678/40", "28/12345678/40"},
		"Ssn-US":                               {"SSN 123-45-6789", "SSN 000-45-6789"},
		"TaxId-DE":                             {"Steuer ID 86 095 742 719", "Steuer ID 86 095 742 718"},
		"TaxId-ES":                             {"NIF X1234567L", "NIF X1234567M"},
		"TaxId-FR":                             {"numéro fiscal 30 23 217 600 053", "30 23 217 600 053"},
		"TaxId-GB":                             {"UTR 12345 67890", "12345 67890"},
		"VehicleIdentificationNumber":          {"VIN 1M8GDM9AXKP042788", "VIN 1M8GDM9A1KP042788"},
		"ZipCode-US":                           {"zip code 98101", "98101"},
		"DateOfBirth":                          {"date of birth 1985-12-31", "shipped 1985-12-31"},
	}
	for id := range identifiers {
		c, ok := cases[id]
		if !ok {
			t.Errorf("%s has no case", id)
			continue
		}
		p := policyOf(t, id, "Inbound", `{"Deny":{}}`)
		if got := p.Inbound(c.found, nil, 0).Denied; got != id {
			t.Errorf("%s does not find %q", id, c.found)
		}
		if got := p.Inbound(c.left, nil, 0).Denied; got != "" {
			t.Errorf("%s finds %q", id, c.left)
		}
	}
}

func TestIPv6(t *testing.T) {
	p := policyOf(t, "IpAddress", "Inbound", `{"Deidentify":{"MaskConfig":{"MaskWithCharacter":"#"}}}`)
	for body, want := range map[string]string{
		"2001:db8::1": "###########",
		"from [2001:DB8:0:0:8:800:200C:417A]:443":  "from [############################]:443",
		"to fe80::1%eth0.":                         "to #######%eth0.",
		"to ::1. Or to 2001:db8::, or fe80::1: no": "to ###. Or to ##########, or #######: no",
		"::ffff:198.51.100.7 and 198.51.100.8":     "################### and ############",
		"1:2:3:4:5:6:7::":                          "###############",
		"dead::beef":                               "##########",
		"12:30:45 of 00:1a:2b:3c:4d:5e":            "12:30:45 of 00:1a:2b:3c:4d:5e",
		"std::string, a::b, ::, 1:2:3":             "std::string, a::b, ::, 1:2:3",
		"1:2:3:4:5:6:7:8:9 12345::1 x2001:db8::1":  "1:2:3:4:5:6:7:8:9 12345::1 x2001:db8::1",
		"at 10:20:198.51.100.7":                    "at 10:20:############",
	} {
		if got := p.Inbound(body, nil, 0).Body; got != want {
			t.Errorf("%q became %q, want %q", body, got, want)
		}
	}
}

// An identifier that takes an address of IPv4 within one of IPv6 for another is reported once.
func TestFindingsAreApart(t *testing.T) {
	p := policyOf(t, "IpAddress", "Inbound", `{"Audit":{"SampleRate":"99","FindingsDestination":{"CloudWatchLogs":{"LogGroup":"/aws/vendedlogs/found"}}}}`)
	in := p.Inbound("198.51.100.8, ::ffff:198.51.100.7", nil, 0)
	if in.Audit == nil || !slices.Equal(in.Audit.Findings[0].Spans, []Span{{0, 12}, {14, 33}}) {
		t.Errorf("%+v", in.Audit)
	}
}

// Ten hostile identifiers: whatever they and the message are, looking ends after a bounded
// number of steps, and the message goes no further.
func TestHostileIdentifiers(t *testing.T) {
	policy := func(regex string, count int) string {
		var own, names []string
		for i := range count {
			own = append(own, fmt.Sprintf(`{"Name":"own%d","Regex":%q}`, i, regex))
			names = append(names, fmt.Sprintf(`"own%d"`, i))
		}
		return fmt.Sprintf(`{"Name":"n","Version":"2021-06-01","Configuration":{"CustomDataIdentifier":[%s]},"Statement":[
			{"DataDirection":"Inbound","Principal":["*"],"DataIdentifier":[%s],"Operation":{"Deidentify":{"RedactConfig":{}}}},
			{"DataDirection":"Outbound","Principal":["*"],"DataIdentifier":[%[2]s],"Operation":{"Deny":{}}}]}`, strings.Join(own, ","), strings.Join(names, ","))
	}
	const size = 1 << 12
	for _, c := range []struct{ name, regex, body string }{
		{"looks ahead to the end for each match", "x(.*y)?", strings.Repeat("x", size)},
		{"many ways at once", strings.Repeat("x*", 50) + "xy", strings.Repeat("x", size)},
		{"nested repetitions", "((x+)+)+y", strings.Repeat("x", size)},
		{"counted repetitions", "(x|xx){30}y", strings.Repeat("x", size)},
		{"every character", `[^\x00]{1,100}z`, strings.Repeat("é", size/2)},
	} {
		p, err := Parse(policy(c.regex, 10))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		l := newLook(c.body)
		l.find(&p.statements[0])
		if l.steps < -maxProgram {
			t.Errorf("%s: %d steps too many", c.name, -l.steps)
		}
		if in := p.Inbound(c.body, nil, 0); in.Endless != l.endless || in.Endless != "" && in.Body != "" {
			t.Errorf("%s: %q, and then %q with %d bytes", c.name, l.endless, in.Endless, len(in.Body))
		}
	}
	p, err := Parse(policy("x(.*y)?", 1))
	if err != nil {
		t.Fatal(err)
	}
	body := strings.Repeat("x", size)
	if in := p.Inbound(body, nil, 0); in.Endless != "own0" || in.Body != "" {
		t.Errorf("%q, %d bytes", in.Endless, len(in.Body))
	}
	if got := p.DeniedOutbound(body, nil); got != "own0" {
		t.Errorf("what cannot be looked through leaves the topic: %q", got)
	}
	if in := p.Inbound("short xyx", nil, 0); in.Endless != "" || in.Body != "short " {
		t.Errorf("%+v", in)
	}
}

// A policy that an earlier version took may be larger than one may be now: a server starts
// with it all the same.
func TestLoadTakesLargePolicies(t *testing.T) {
	text := strings.Replace(documentOf("EmailAddress", "Inbound", `{"Deny":{}}`), `"Name":"n"`,
		`"Name":"n","Configuration":{"CustomDataIdentifier":[{"Name":"own","Regex":"x{999}y{999}z{999}"}]}`, 1)
	if _, err := Parse(text); !errors.Is(err, ErrProgram) {
		t.Errorf("given: %v", err)
	}
	if p, err := Load(text); err != nil || p.Text() != text {
		t.Errorf("stored: %v", err)
	}
}

// What is found is what package regexp finds.
func FuzzSearch(f *testing.F) {
	for _, seed := range [][2]string{
		{"a|ab", "abab"},
		{"(?:a|ab)(?:c|bcd)d*", "abcdd abcd"},
		{`\bx+?y*\b`, "xxyy xx yx"},
		{"(?i)ſk", "SKſk"},
		{`(?m)^.+$`, "a\nb\n\nc"},
		{`[^a]{2,3}`, "bcdaéx\xff\xfe"},
		{`(a*)*b`, "aaab b"},
		{`x(.*y)?`, "xxxyx\nx"},
		{`\B.`, "ab c"},
		{`a.c`, "abc a\nc"},
		{`\Aab|c\z`, "abcabc"},
		{`(?s).x`, "\nxx"},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, text, body string) {
		d, err := customDetector("own", text)
		if err != nil || d.own.size() > maxProgram || len(body) > 1<<12 {
			t.Skip()
		}
		steps := 1 << 26
		got, ok := d.find(body, &steps)
		if !ok {
			t.Skip()
		}
		var want []Span
		for _, at := range regexp.MustCompile(text).FindAllStringIndex(body, -1) {
			want = append(want, Span{at[0], at[1]})
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q in %q: %v, want %v", text, body, got, want)
		}
	})
}

// A number that only looks like the data, just before it, does not hide it.
func TestLookalikesHideNothing(t *testing.T) {
	for id, body := range map[string]string{
		"CreditCardNumber":         "card 2222 4111 1111 1111 1111",
		"SocialInsuranceNumber-CA": "sin 123 046 454 286",
		"LatLong":                  "location 97.123,-8.5417,47.3769",
	} {
		if got := policyOf(t, id, "Inbound", `{"Deny":{}}`).Inbound(body, nil, 0).Denied; got != id {
			t.Errorf("%s in %q: %q", id, body, got)
		}
	}
	// One that is twice as long is found as far as it was.
	if got := policyOf(t, "CreditCardNumber", "Inbound", `{"Deidentify":{"RedactConfig":{}}}`).Inbound("card 2222 4111-1111-1111-1111.", nil, 0).Body; got != "card 2222 ." {
		t.Errorf("%q", got)
	}
}

// However often statements name an identifier, what it finds is kept and changed once: a
// policy of 30 KiB can name it some thousand times.
func TestFindingsAreBounded(t *testing.T) {
	names := strings.Repeat(`"d",`, 1000) + `"d"`
	one := `{"DataDirection":"Inbound","Principal":["*"],"DataIdentifier":[` + names + `],"Operation":{"Deidentify":{"MaskConfig":{"MaskWithCharacter":"#"}}}}`
	again := strings.Replace(strings.Replace(one, names, `"d"`, 1), "#", "*", 1)
	p, err := Parse(`{"Name":"n","Version":"2021-06-01","Configuration":{"CustomDataIdentifier":[{"Name":"d","Regex":"\\d"}]},"Statement":[` + one + "," + again + `]}`)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(p.statements[0].detectors); n != 1 {
		t.Errorf("%d times the same", n)
	}
	body := strings.Repeat("1", 1<<12)
	if in := p.Inbound(body, nil, 0); in.Body != strings.Repeat("#", 1<<12) || in.Changed != 1<<12 {
		t.Errorf("%d changes, %q", in.Changed, in.Endless)
	}

	// Ten that find every character find too much.
	l := newLook(strings.Repeat("1", 1<<16))
	kept := 0
	for range 10 {
		d, err := customDetector("own", `\d`)
		if err != nil {
			t.Fatal(err)
		}
		spans, _ := d.find(l.body, &l.steps)
		kept += len(spans)
	}
	if most := 3*len(l.body) + stepsOfAnyone/stepsPerFinding; kept > most || l.steps >= 0 {
		t.Errorf("%d places of a text of %d bytes, want %d at most", kept, len(l.body), most)
	}
}

func TestKeywordDistance(t *testing.T) {
	p := policyOf(t, "Ssn-US", "Inbound", `{"Deny":{}}`)
	for body, want := range map[string]bool{
		"ssn" + strings.Repeat(".", 29) + "123-45-6789":     true,
		"ssn" + strings.Repeat(".", 31) + "123-45-6789":     false,
		"123-45-6789" + strings.Repeat(".", 30) + "ssn":     true,
		"123-45-6789" + strings.Repeat(".", 31) + "ssn":     false,
		"social_security 123456789":                         true,
		"SocialSecurity: 123456789":                         true,
		"123-45-6789 or 987-65-4320 ssn":                    true,
		"ssn ssn" + strings.Repeat(".", 28) + "123-45-6789": true,
		"ssnx 123-45-6789":                                  false,
		"the ssn 9123-45-6789":                              false,
		strings.Repeat("é", 40) + " ssn: é 123-45-6789 é":   true,
	} {
		if got := p.Inbound(body, nil, 0).Denied != ""; got != want {
			t.Errorf("%q: found %v, want %v", body, got, want)
		}
	}
}

func TestMaskAndRedact(t *testing.T) {
	const body = "é a@example.com, then b@example.com."
	for operation, want := range map[string]string{
		`{"Deidentify":{"MaskConfig":{"MaskWithCharacter":"#"}}}`: "é #############, then #############.",
		`{"Deidentify":{"RedactConfig":{}}}`:                      "é , then .",
	} {
		got := policyOf(t, "EmailAddress", "Inbound", operation).Inbound(body, nil, 0)
		if got.Body != want || got.Changed != 2 || got.Denied != "" {
			t.Errorf("%s: %+v, want %q", operation, got, want)
		}
	}
}

// Where two identifiers overlap, nothing of either stays.
func TestOverlap(t *testing.T) {
	p, err := Parse(`{"Name":"n","Version":"2021-06-01","Configuration":{"CustomDataIdentifier":[{"Name":"Ab","Regex":"ab+"},{"Name":"Bc","Regex":"b(b|c)*c"}]},
		"Statement":[
		{"DataDirection":"Inbound","Principal":["*"],"DataIdentifier":["Ab"],"Operation":{"Deidentify":{"MaskConfig":{"MaskWithCharacter":"*"}}}},
		{"DataDirection":"Inbound","Principal":["*"],"DataIdentifier":["Bc"],"Operation":{"Deidentify":{"RedactConfig":{}}}}]}`)
	if err != nil {
		t.Fatal(err)
	}
	if got := p.Inbound("xabbcx bc", nil, 0).Body; got != "x***x " {
		t.Errorf("%q", got)
	}
}

func TestAudit(t *testing.T) {
	p := policyOf(t, "EmailAddress", "Inbound", `{"Audit":{"SampleRate":"50","FindingsDestination":{"CloudWatchLogs":{"LogGroup":"/aws/vendedlogs/found"}},"NoFindingsDestination":{"CloudWatchLogs":{"LogGroup":"/aws/vendedlogs/none"}}}}`)
	in := p.Inbound("to a@example.com", nil, 49)
	if in.Audit == nil || in.Audit.LogGroup != "/aws/vendedlogs/found" || len(in.Audit.Findings) != 1 || in.Audit.Findings[0].Spans[0] != (Span{3, 16}) || in.Body != "to a@example.com" {
		t.Errorf("%+v", in)
	}
	if in := p.Inbound("nothing", nil, 0); in.Audit == nil || in.Audit.LogGroup != "/aws/vendedlogs/none" || len(in.Audit.Findings) != 0 {
		t.Errorf("%+v", in)
	}
	if in := p.Inbound("to a@example.com", nil, 50); in.Audit != nil {
		t.Error("not in the sample, and audited")
	}
	if !p.Audits() || p.Outbound() {
		t.Error("what the policy looks at")
	}
}

func TestPrincipals(t *testing.T) {
	who := []string{"arn:aws:iam::123456789012:user/a", "123456789012"}
	for _, c := range []struct {
		member string
		denied bool
	}{
		{`"Principal":["*"]`, true},
		{`"Principal":["arn:aws:iam::123456789012:user/a"]`, true},
		{`"Principal":["arn:aws:iam::123456789012:user/b"]`, false},
		{`"Principal":["123456789012"]`, true},
		{`"NotPrincipal":["arn:aws:iam::123456789012:user/a"]`, false},
		{`"NotPrincipal":["arn:aws:iam::123456789012:user/b"]`, true},
	} {
		p, err := Parse(strings.Replace(documentOf("EmailAddress", "Outbound", `{"Deny":{}}`), `"Principal":["*"]`, c.member, 1))
		if err != nil {
			t.Fatal(err)
		}
		if got := p.DeniedOutbound("a@example.com", who) != ""; got != c.denied {
			t.Errorf("%s: denied %v", c.member, got)
		}
		if p.Inbound("a@example.com", who, 0).Denied != "" {
			t.Error("an outbound statement denies a publish")
		}
	}
}

func TestParseRefuses(t *testing.T) {
	valid := documentOf("EmailAddress", "Inbound", `{"Deny":{}}`)
	edit := func(from, to string) string {
		if !strings.Contains(valid, from) {
			t.Fatalf("%s is not in the document", from)
		}
		return strings.Replace(valid, from, to, 1)
	}
	audit := func(member string) string { return edit(`{"Deny":{}}`, `{"Audit":`+member+`}`) }
	custom := func(name, regex string) string {
		return edit(`"Name":"n"`, fmt.Sprintf(`"Name":"n","Configuration":{"CustomDataIdentifier":[{"Name":%q,"Regex":%q}]}`, name, regex))
	}
	one := valid[strings.Index(valid, "[{")+1 : len(valid)-2]
	for _, c := range []struct {
		document string
		want     *fault.Rule
	}{
		{"", ErrJSON},
		{"[]", ErrJSON},
		{valid + "x", ErrJSON},
		{edit(`"Name":"n"`, `"Nmae":"n"`), ErrJSON},
		{edit(`"Name":"n",`, ``), ErrLacks},
		{edit("2021-06-01", "2012-10-17"), ErrVersion},
		{strings.Repeat(" ", maxDocument+1), ErrTooLong},
		{edit("Inbound", "inbound"), ErrDirection},
		{edit(`["*"]`, `[]`), ErrPrincipals},
		{edit("/EmailAddress", "/Email"), ErrIdentifier},
		{edit("/EmailAddress", "/Name"), ErrModel},
		{edit("/EmailAddress", "/Address"), ErrModel},
		{edit("arn:aws:dataprotection::aws:data-identifier/EmailAddress", "EmailAddress"), ErrIdentifier},
		{edit(`{"Deny":{}}`, `{}`), ErrOperation},
		{edit(`{"Deny":{}}`, `{"Deny":{},"Deidentify":{"RedactConfig":{}}}`), ErrOperation},
		{edit(`{"Deny":{}}`, `{"Deidentify":{}}`), ErrDeidentify},
		{edit(`{"Deny":{}}`, `{"Deidentify":{"MaskConfig":{}}}`), ErrMask},
		{edit(`{"Deny":{}}`, `{"Deidentify":{"MaskConfig":{"MaskWithCharacter":"é"}}}`), ErrMask},
		{edit(`{"Deny":{}}`, `{"Deidentify":{"MaskConfig":{"MaskWithCharacter":"\""}}}`), ErrMask},
		{strings.Replace(edit(`{"Deny":{}}`, `{"Deidentify":{"RedactConfig":{}}}`), "Inbound", "Outbound", 1), ErrInboundOnly},
		{audit(`{"SampleRate":100,"FindingsDestination":{"CloudWatchLogs":{"LogGroup":"/aws/vendedlogs/a"}}}`), ErrSampleRate},
		{audit(`{"FindingsDestination":{"CloudWatchLogs":{"LogGroup":"/aws/vendedlogs/a"}}}`), ErrSampleRate},
		{audit(`{"SampleRate":9}`), ErrStatementLacks},
		{audit(`{"SampleRate":9,"FindingsDestination":{"CloudWatchLogs":{"LogGroup":"/other"}}}`), ErrLogGroup},
		{audit(`{"SampleRate":9,"FindingsDestination":{"S3":{"Bucket":"b"}}}`), ErrDestination},
		{custom("EmailAddress", "a"), ErrOwnName},
		{custom("a b", "a"), ErrOwnName},
		{custom("a", "("), ErrOwnRegex},
		{custom("a", "a*"), ErrOwnRegex},
		{custom("a", `\b`), ErrOwnRegex},
		{custom("a", "x|y?"), ErrOwnRegex},
		{custom("a", strings.Repeat("a", 201)), ErrOwnRegex},
		{custom("a", "((x{9}){99}){99}"), ErrOwnRegex},
		{custom("a", "x{999}y{999}z{999}"), ErrProgram},
		{edit(one, strings.Repeat(one+",", maxStatements)+one), ErrTooManyParts},
	} {
		if _, err := Parse(c.document); !refused(err, c.want) {
			t.Errorf("%.300s: %v, want %v", c.document, err, c.want)
		}
	}
	two := audit(`{"SampleRate":9,"FindingsDestination":{"CloudWatchLogs":{"LogGroup":"/aws/vendedlogs/a"}}}`)
	part := two[strings.Index(two, "[{")+1 : len(two)-2]
	if _, err := Parse(strings.Replace(two, part, part+","+part, 1)); !refused(err, ErrAudits) {
		t.Errorf("two audits: %v", err)
	}
	for _, region := range []string{"arn:aws:dataprotection:eu-west-1::data-identifier/EmailAddress"} {
		if _, err := Parse(edit("arn:aws:dataprotection::aws:data-identifier/EmailAddress", region)); err != nil {
			t.Errorf("%s: %v", region, err)
		}
	}
}

// refused reports that a policy is refused by the rule, or a statement of it is.
func refused(err error, rule *fault.Rule) bool {
	return errors.Is(err, rule) || errors.Is(err, ErrStatement) && strings.Contains(err.Error(), rule.Error())
}

// Whatever the message, what is taken out is out, the rest stays, and a second look finds
// nothing where characters were masked.
func FuzzInbound(f *testing.F) {
	f.Add("mail a@example.com from 198.51.100.7, ssn 123-45-6789, visa 4111111111111111")
	f.Add("é\xff a@é.com\x00")
	mask, err := Parse(`{"Name":"n","Version":"2021-06-01","Statement":[{"DataDirection":"Inbound","Principal":["*"],"DataIdentifier":[` + allIdentifiers() + `],"Operation":{"Deidentify":{"MaskConfig":{"MaskWithCharacter":"#"}}}}]}`)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, body string) {
		in := mask.Inbound(body, nil, 0)
		if len(in.Body) > len(body) {
			t.Fatalf("%q grew to %q", body, in.Body)
		}
		kept := 0
		for i, c := range []byte(in.Body) {
			if c != '#' {
				kept++
			}
			if len(in.Body) == len(body) && c != '#' && c != body[i] {
				t.Fatalf("%q became %q", body, in.Body)
			}
		}
		if in.Changed == 0 && in.Body != body {
			t.Fatalf("%q became %q without a change", body, in.Body)
		}
		if in.Changed > 0 && in.Body == body && !strings.Contains(body, "#") {
			t.Fatalf("%q: %d changes changed nothing", body, in.Changed)
		}
	})
}

func allIdentifiers() string {
	var all []string
	for id := range identifiers {
		all = append(all, `"arn:aws:dataprotection::aws:data-identifier/`+id+`"`)
	}
	return strings.Join(all, ",")
}
