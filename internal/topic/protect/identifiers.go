package protect

// identifier defines how one kind of data is found.
type identifier struct {
	// pattern is RE2. Its first group is the data, if it also matches the context.
	pattern string
	check   func(string) bool
	// keywords, separated by commas: one of them must be near.
	keywords string
	// or finds other forms of the same data; nil: there are none.
	or *identifier
}

// needsModel are AWS's identifiers of data that no pattern finds.
var needsModel = map[string]bool{"Name": true, "Address": true}

const (
	ibanKeywords     = "account,account code,account number,accountno,acct,bank,bank account,bank routing,banking,bic,iban,sepa,swift,konto,kontonummer,kontonr,bankleitzahl,blz,compte bancaire,code banque,rib,cuenta,cuenta bancaria,numero de cuenta,conto,conto corrente,conto bancario,sort code"
	licenceKeywords  = "driver license,drivers license,driver's license,drivers licence,driver licence,driver's licence,driving license,driving licence,driving permit,license number,licence number,license no,dl,dlno,dl number,dmv,fuhrerschein,führerschein,permis de conduire,patente di guida,patente,permiso de conducir,carnet de conducir"
	passportKeywords = "passport,passport number,passport no,passportno,passport#,passeport,numero de passeport,numéro de passeport,pasaporte,numero de pasaporte,número de pasaporte,passaporto,numero passaporto,reisepass,reisepassnummer,passnummer"
	phoneKeywords    = "phone,phone number,telephone,tel,mobile,mobile number,cell,cell phone,fax,contact,telefon,telefonnummer,handy,mobil,telefono,teléfono,movil,móvil,cellulare,téléphone,portable,telefone,celular"
	taxKeywords      = "tax id,tax identification,tax identification number,tax number,taxid,tin,tax payer,taxpayer,steuernummer,steueridentifikationsnummer,steuer id,numero fiscal,numéro fiscal,numero d'identification fiscale,nif,cif,utr,unique taxpayer reference,itin,i.t.i.n."
	nationalKeywords = "national id,national identification,national identity,identity card,identity number,id card,id number,personalausweis,personalausweisnummer,ausweis,dni,documento nacional de identidad,codice fiscale,carte nationale,cni,numero de identidad"
)

// ipv6 are IPv6 addresses, including those with an IPv4 address at the end. Source: RFC 4291,
// 2.2.
var ipv6 = identifier{
	pattern: `(?:^|[^0-9A-Za-z:.])((?:[0-9A-Fa-f]{0,4}:){1,8}(?:\d{1,3}(?:\.\d{1,3}){3}|[0-9A-Fa-f]{1,4}|:))(?:$|[^0-9A-Za-z:.]|[.:](?:$|[^0-9A-Za-z:.]))`,
	check:   groups,
}

// identifiers are AWS's managed data identifiers with a pattern, by name. Source: "Using
// managed data identifiers" in the SNS developer guide for the names and keywords; the patterns
// follow the published forms of the numbers.
var identifiers = map[string]identifier{
	// Credentials.
	"AwsSecretKey":      {pattern: `(?:^|[^A-Za-z0-9/+=])([A-Za-z0-9/+]{40})(?:$|[^A-Za-z0-9/+=])`, keywords: "aws_secret_access_key,credentials,secret access key,secret key,set-awscredential,aws secret"},
	"OpenSshPrivateKey": {pattern: `-----BEGIN OPENSSH PRIVATE KEY-----[A-Za-z0-9+/=\s]*(?:-----END OPENSSH PRIVATE KEY-----)?`},
	"PgpPrivateKey":     {pattern: `-----BEGIN PGP PRIVATE KEY BLOCK-----[^-]*(?:-----END PGP PRIVATE KEY BLOCK-----)?`},
	"PkcsPrivateKey":    {pattern: `-----BEGIN (?:RSA |EC |DSA |ENCRYPTED )?PRIVATE KEY-----[^-]*(?:-----END (?:RSA |EC |DSA |ENCRYPTED )?PRIVATE KEY-----)?`},
	"PuttyPrivateKey":   {pattern: `PuTTY-User-Key-File-[23]:[^\n]*(?:\r?\n[^\n]+)*`},

	// Devices and places.
	"IpAddress": {pattern: `(?:^|[^0-9.])(\d{1,3}(?:\.\d{1,3}){3})(?:$|[^0-9.]|\.(?:$|[^0-9]))`, check: octets, or: &ipv6},
	"LatLong":   {pattern: `-?\d{1,2}\.\d{3,},\s?-?\d{1,3}\.\d{3,}`, check: latLong, keywords: "coordinate,coordinates,lat,latitude,long,longitude,lat long,latitude longitude,location,position"},

	// Money.
	"BankAccountNumber-DE":   {pattern: `\bDE\d{2}(?: ?\d{4}){4} ?\d{2}\b`, check: iban, keywords: ibanKeywords},
	"BankAccountNumber-ES":   {pattern: `\bES\d{2}(?: ?\d{4}){5}\b`, check: iban, keywords: ibanKeywords},
	"BankAccountNumber-FR":   {pattern: `\bFR\d{2}(?: ?\d{4}){2} ?\d{2}[0-9A-Z]{2} ?[0-9A-Z]{4} ?[0-9A-Z]{4} ?[0-9A-Z]\d{2}\b`, check: iban, keywords: ibanKeywords},
	"BankAccountNumber-GB":   {pattern: `\bGB\d{2} ?[A-Z]{4}(?: ?\d{4}){3} ?\d{2}\b`, check: iban, keywords: ibanKeywords},
	"BankAccountNumber-IT":   {pattern: `\bIT\d{2} ?[A-Z]\d{3} ?\d{4} ?\d{3}[0-9A-Z](?: ?[0-9A-Z]{4}){2} ?[0-9A-Z]{3}\b`, check: iban, keywords: ibanKeywords},
	"BankAccountNumber-US":   {pattern: `\b\d{10,17}\b`, keywords: "bank account,bank acct,checking account,checking acct,deposit account,deposit acct,savings account,savings acct,chequing account,chequing acct"},
	"CreditCardNumber":       {pattern: `\b[2-6]\d{3}[ -]?(?:\d{6}[ -]?\d{5}|\d{4}[ -]?\d{4}[ -]?\d{4}(?:\d{1,3})?|\d{9,15})\b`, check: card, keywords: "account number,american express,amex,bank card,card,card num,card number,cc #,ccn,check card,credit,credit card,credit card#,dankort,debit,debit card,diners club,discover,electron,elo verification code,japanese card bureau,jcb,mastercard,mc,pan,payment account number,payment card number,pcn,union pay,visa"},
	"CreditCardExpiration":   {pattern: `\b(?:0[1-9]|1[0-2])[/-](?:20)?\d{2}\b`, keywords: "exp d,exp m,exp y,expiration,expiry,exp date,expiration date,expires,valid thru"},
	"CreditCardSecurityCode": {pattern: `\b\d{3,4}\b`, keywords: "card id,card identification code,card identification number,card security code,card validation code,card validation number,card verification data,card verification value,cvc,cvc2,cvv,cvv2,elo verification code,security code"},

	// Health.
	"DrugEnforcementAgencyNumber-US": {pattern: `\b[A-Za-z][A-Za-z9]\d{7}\b`, check: dea, keywords: "dea number,dea registration,dea"},
	"HealthcareProcedureCode-US":     {pattern: `\b[A-CEGHJ-MP-V]\d{4}\b`, keywords: "current procedural terminology,hcpcs,healthcare common procedure coding system"},
	"HealthInsuranceCardNumber-EU":   {pattern: `\b80\d{18}\b`, keywords: "assicurazione sanitaria numero,carta assicurazione numero,carte d'assurance maladie,carte européenne d'assurance maladie,ceam,ehic,ehic#,europäische krankenversicherungskarte,health card,health card number,healthcare number,health insurance number,krankenversicherungskarte,tarjeta sanitaria europea,tessera sanitaria"},
	"HealthInsuranceClaimNumber-US":  {pattern: `\b\d{3}-?\d{2}-?\d{4}-?[A-Za-z]\d?\b`, keywords: "health insurance claim number,hic no,hic no.,hic number,hic#,hicn,hicn#,hicno#"},
	"HealthInsuranceNumber-FR":       {pattern: `\b[12] ?\d{2} ?(?:0[1-9]|1[0-2]) ?(?:\d{2}|2[AB]) ?\d{3} ?\d{3} ?\d{2}\b`, check: insee, keywords: "carte vitale,carte d'assuré social,insurance card,carte d'assure social"},
	"MedicareBeneficiaryNumber-US":   {pattern: `\b[1-9][AC-HJKMNP-RT-Y][0-9AC-HJKMNP-RT-Y]\d-?[AC-HJKMNP-RT-Y][0-9AC-HJKMNP-RT-Y]\d-?[AC-HJKMNP-RT-Y]{2}\d{2}\b`, keywords: "mbi,medicare beneficiary"},
	"NationalDrugCode-US":            {pattern: `\b(?:\d{4}-\d{4}-\d{2}|\d{5}-\d{3}-\d{2}|\d{5}-\d{4}-\d{1,2})\b`, keywords: "national drug code,ndc"},
	"NationalProviderId-US":          {pattern: `\b[12]\d{9}\b`, check: npi, keywords: "hipaa,n.p.i,national provider,npi"},
	"NhsNumber-GB":                   {pattern: `\b\d{3}[ -]?\d{3}[ -]?\d{4}\b`, check: nhs, keywords: "national health service,nhs"},
	"PersonalHealthNumber-CA":        {pattern: `\b9\d{3}[ -]?\d{3}[ -]?\d{3}\b`, keywords: "canada healthcare number,msp number,personal healthcare number,phn,soins de santé"},

	// Persons.
	"CepCode-BR":                           {pattern: `\b\d{5}-?\d{3}\b`, keywords: "cep,código de endereçamento postal,codigo de endereçamento postal,codigo postal,código postal"},
	"CpfCode-BR":                           {pattern: `\b\d{3}\.?\d{3}\.?\d{3}-?\d{2}\b`, check: cpf, keywords: "cpf,cadastro de pessoa fisica,cadastro de pessoas físicas,cadastro de pessoa física"},
	"RgNumber-BR":                          {pattern: `\b\d{2}\.?\d{3}\.?\d{3}-?[0-9Xx]\b`, keywords: "rg,registro geral,carteira de identidade"},
	"DriversLicense-CA":                    {pattern: `\b(?:[A-Z]\d{4}[ -]?\d{5}[ -]?\d{5}|[A-Z]\d{12}|\d{6}-?\d{3}|\d{7,8})\b`, keywords: licenceKeywords},
	"DriversLicense-DE":                    {pattern: `\b[A-Z0-9]\d{2}[A-Z0-9]{6}\d[A-Z0-9]\b`, keywords: licenceKeywords},
	"DriversLicense-ES":                    {pattern: `\b\d{8}-?[A-Z]\b`, check: spanish, keywords: licenceKeywords},
	"DriversLicense-FR":                    {pattern: `\b\d{12}\b`, keywords: licenceKeywords},
	"DriversLicense-GB":                    {pattern: `\b[A-Z9]{5}\d[0156]\d[0-3]\d{2}[A-Z9]{2}\d[A-Z]{2}\b`, keywords: licenceKeywords},
	"DriversLicense-IT":                    {pattern: `\b(?:[A-Z]{2}\d{7}[A-Z]|U1[A-Z0-9]{7}[A-Z])\b`, keywords: licenceKeywords},
	"DriversLicense-US":                    {pattern: `\b(?:[A-Z]\d{6,14}|[A-Z]{2}\d{6,7}|\d{7,12})\b`, keywords: licenceKeywords},
	"ElectoralRollNumber-GB":               {pattern: `\b[A-Z]{2,3}-?\d{1,4}\b`, keywords: "electoral #,electoral number,electoral roll #,electoral roll no.,electoral roll number,electoralrollno"},
	"EmailAddress":                         {pattern: `\b[A-Za-z0-9._%+-]+@[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?(?:\.[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?)*\.[A-Za-z]{2,24}\b`},
	"IndividualTaxIdentificationNumber-US": {pattern: `\b9\d{2}[ -]?(?:5\d|6[0-5]|7\d|8[0-8]|9[0-24-9])[ -]?\d{4}\b`, keywords: taxKeywords},
	"InseeCode-FR":                         {pattern: `\b[12] ?\d{2} ?(?:0[1-9]|1[0-2]) ?(?:\d{2}|2[AB]) ?\d{3} ?\d{3} ?\d{2}\b`, check: insee, keywords: "insee,numéro de sécurité,numero de securite,sécurité sociale,securite sociale,code insee,nir"},
	"NationalIdentificationNumber-DE":      {pattern: `\b[CFGHJKLMNPRTVWXYZ][CFGHJKLMNPRTVWXYZ0-9]{8}\d?\b`, keywords: nationalKeywords},
	"NationalIdentificationNumber-ES":      {pattern: `\b\d{8}[ -]?[A-Z]\b`, check: spanish, keywords: nationalKeywords},
	"NationalIdentificationNumber-IT":      {pattern: `\b[A-Z]{6}\d{2}[A-EHLMPR-T]\d{2}[A-Z]\d{3}[A-Z]\b`, check: italian, keywords: nationalKeywords},
	"NieNumber-ES":                         {pattern: `\b[XYZxyz][ -]?\d{7}[ -]?[A-Za-z]\b`, check: spanish, keywords: "nie,número de identidad de extranjero,numero de identidad de extranjero,identidad extranjero,número de identificación de extranjero"},
	"NifNumber-ES":                         {pattern: `\b\d{8}[ -]?[A-Za-z]\b`, check: spanish, keywords: "nif,número de identificación fiscal,numero de identificacion fiscal"},
	"PassportNumber-CA":                    {pattern: `\b[A-Z]{2}\d{6}\b`, keywords: passportKeywords},
	"PassportNumber-DE":                    {pattern: `\b[CFGHJK][CFGHJKLMNPRTVWXYZ0-9]{8}\d?\b`, keywords: passportKeywords},
	"PassportNumber-ES":                    {pattern: `\b[A-Z]{2,3}\d{6}\b`, keywords: passportKeywords},
	"PassportNumber-FR":                    {pattern: `\b\d{2}[A-Z]{2}\d{5}\b`, keywords: passportKeywords},
	"PassportNumber-GB":                    {pattern: `\b\d{9}\b`, keywords: passportKeywords},
	"PassportNumber-IT":                    {pattern: `\b[A-Z]{2}\d{7}\b`, keywords: passportKeywords},
	"PassportNumber-US":                    {pattern: `\b[A-Z0-9]\d{8}\b`, keywords: passportKeywords},
	"PermanentResidenceNumber-CA":          {pattern: `\b[A-Z]{2}\d{7}(?:\d{3})?\b`, keywords: "carte résident permanent,numéro carte résident permanent,permanent resident card,permanent resident card number,permanent resident no,permanent resident no.,permanent resident number,pr no,pr no.,pr non,pr number"},
	"PhoneNumber-BR":                       {pattern: `(?:\+55 ?)?\(?\b\d{2}\)? ?9?\d{4}[ -]?\d{4}\b`, keywords: phoneKeywords},
	"PhoneNumber-DE":                       {pattern: `(?:\+49|\b0049|\b0)[ /-]?\d{2,5}[ /-]?\d{3,9}(?:[ -]\d{1,5})?\b`, keywords: phoneKeywords},
	"PhoneNumber-ES":                       {pattern: `(?:\+34 ?|\b)[6789]\d{2}[ -]?\d{3}[ -]?\d{3}\b`, keywords: phoneKeywords},
	"PhoneNumber-FR":                       {pattern: `(?:\+33 ?|\b0)[1-9](?:[ .-]?\d{2}){4}\b`, keywords: phoneKeywords},
	"PhoneNumber-GB":                       {pattern: `(?:\+44 ?|\b0)\d{2,5}[ -]?\d{3,4}[ -]?\d{3,4}\b`, keywords: phoneKeywords},
	"PhoneNumber-IT":                       {pattern: `(?:\+39 ?)?\b[03]\d{1,3}[ -]?\d{3,4}[ -]?\d{3,4}\b`, keywords: phoneKeywords},
	"PhoneNumber-US":                       {pattern: `(?:\+?1[ .-]?)?\(?\b[2-9]\d{2}\)?[ .-]?[2-9]\d{2}[ .-]?\d{4}\b`, keywords: phoneKeywords},
	"PostalCode-CA":                        {pattern: `\b[ABCEGHJ-NPRSTVXYabceghj-nprstvxy]\d[A-Za-z][ -]?\d[A-Za-z]\d\b`, keywords: "postal code,code postal,zip"},
	"SocialInsuranceNumber-CA":             {pattern: `\b\d{3}[ -]?\d{3}[ -]?\d{3}\b`, check: luhn, keywords: "canadian id,numéro d'assurance sociale,social insurance number,sin,nas"},
	"Ssn-ES":                               {pattern: `\b\d{2}[ /-]?\d{7,8}[ /-]?\d{2}\b`, keywords: "número de la seguridad social,numero de la seguridad social,seguridad social,nass,nuss,social security number,ssn"},
	"Ssn-US":                               {pattern: `\b\d{3}[ -]?\d{2}[ -]?\d{4}\b`, check: ssn, keywords: "social security,ss#,ssn,social security number,ssn#"},
	"TaxId-DE":                             {pattern: `\b\d{2} ?\d{3} ?\d{3} ?\d{3}\b`, check: german, keywords: taxKeywords},
	"TaxId-ES":                             {pattern: `\b(?:[XYZxyz]\d{7}|\d{8})[ -]?[A-Za-z]\b`, check: spanish, keywords: taxKeywords},
	"TaxId-FR":                             {pattern: `\b[0-3]\d ?\d{2} ?\d{3} ?\d{3} ?\d{3}\b`, keywords: taxKeywords},
	"TaxId-GB":                             {pattern: `\b\d{5} ?\d{5}\b`, keywords: taxKeywords},
	"VehicleIdentificationNumber":          {pattern: `\b[A-HJ-NPR-Za-hj-npr-z0-9]{17}\b`, check: vin, keywords: "fahrgestellnummer,niv,numarul de identificare,numarul seriei de sasiu,numer vin,número de identificação do veículo,número de identificación de automóviles,numéro d'identification du véhicule,vehicle identification number,vin,vin numeris"},
	"ZipCode-US":                           {pattern: `\b\d{5}(?:-\d{4})?\b`, keywords: "zip code,zip+4,zip"},
	"DateOfBirth":                          {pattern: `\b(?:\d{1,2}[./-]\d{1,2}[./-](?:19|20)?\d{2}|(?:19|20)\d{2}[./-]\d{1,2}[./-]\d{1,2})\b`, keywords: "bday,b-day,birth date,birthday,date of birth,dob,born,geburtsdatum,date de naissance,fecha de nacimiento,data di nascita,data de nascimento"},
}
