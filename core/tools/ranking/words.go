package ranking

import (
	"strings"
	"unicode"

	"github.com/kljensen/snowball/english"
)

// words splits text into stems: at characters that are neither letters nor digits, and before a capital letter that
// starts a new word of a name (getUser, HTTPServer).
func words(text string) (stems []string) {
	var word []rune
	flush := func() {
		if len(word) > 0 {
			stems = append(stems, english.Stem(strings.ToLower(string(word)), false))
			word = word[:0]
		}
	}
	runes := []rune(text)
	for i, r := range runes {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			flush()
			continue
		}
		if unicode.IsUpper(r) && i > 0 {
			next := i+1 < len(runes) && unicode.IsLower(runes[i+1])
			if unicode.IsLower(runes[i-1]) || unicode.IsUpper(runes[i-1]) && next {
				flush()
			}
		}
		word = append(word, r)
	}
	flush()
	return stems
}

// fillers are query words that say nothing about what is wanted.
const fillers = `
a an the this that these those some any all each my your our their his her its me you us them it i we he she they
of in on at to for from by with about into over under after before between as is are was were be been do does did
and or not no if then so than can could would should will may might must shall have has had
what which who whom whose where when why how there here
tool tools please want need help use using like one something someone thing things way able
`

// alike contains groups of words that people use for the same thing, one group per line. The words of a group match
// each other with a lower weight than the word itself.
const alike = `
add create make new insert register open start
delete remove drop erase discard clear destroy rm trash
get fetch read retrieve show view display load cat print
list enumerate all browse ls index directory
find search look lookup query locate seek grep discover
update edit modify change set alter patch adjust
send post submit publish write message share
run execute exec invoke launch perform call trigger
stop cancel abort halt kill terminate end close pause
move rename transfer mv relocate
copy duplicate clone cp fork replicate
begin start boot launch resume
save store keep write persist
upload attach import
download export save
combine merge join concatenate unite
split divide separate cut
compress shrink reduce zip minify
enable activate arm
disable deactivate silence mute suppress snooze
restart reboot bounce reload
confirm acknowledge ack accept approve
decline reject deny refuse
reserve book booking reservation
repeat retry rerun
compare diff difference
count number total amount
connect attach link relate associate
watch follow monitor observe track
repository repo project
directory dir folder mkdir
file document doc page sheet
path location place
message msg mail email note notification dm
inbox mailbox
attachment file enclosure
tag label category
thread conversation discussion channel room chat
comment reply note remark answer respond
database db
table relation
schema structure columns describe
row record entry
configuration config settings setting options preferences
environment env
secret credential password token
certificate cert tls ssl
image picture photo img png jpeg
screenshot capture snapshot screen
audio sound speech voice
video clip movie film
pull request pr merge
commit change history log
branch fork
issue ticket bug task story defect todo
backlog sprint iteration board kanban
release version deploy deployment rollout
pipeline build ci workflow job
user person people member account profile colleague staff employee
team group department
owner assignee responsible
role permission right access policy
calendar event meeting appointment schedule
guest attendee participant invitee
invitation invite rsvp
reminder alarm notification alert
available availability free vacant
reschedule postpone update move
weather forecast temperature climate
rain precipitation shower snow
warning alert alarm
storm severe hurricane thunderstorm
pollution air smog quality
dawn sunrise sun dusk sunset
now current currently present today
past historical history previous earlier
upcoming next future
convert transform translate
calculate compute math evaluate
statistics stats metrics figures
authenticate login auth signin
logout signout
information info details metadata
application app
web internet website url link site
button click press push tap
table spreadsheet sheet
sql statement
order purchase buy
cart basket checkout
customer client contact buyer
lead prospect opportunity
deal sale opportunity
revenue income turnover sales
forecast projection prediction predict estimate
invoice bill receipt
price cost quote fee rate
cost spend spending expense bill
discount coupon promo promotion voucher rebate
refund reimburse reimbursement chargeback
payment charge transaction pay
subscription plan membership
balance funds money cash
money funds payment wire
stock share equity ticker
currency money forex fx
tax vat duty
product item goods article
inventory stock supply
shipment delivery parcel package shipping
time date clock hours
kubernetes k8s kubectl
container docker
process job ps
shell terminal bash command
server machine host instance vm node
serverless lambda function
bucket s3 storage blob
log logs output stdout
error exception crash failure
incident outage downtime
dashboard panel chart graph
oncall rota roster shift duty
latency delay performance speed
quota limit allowance restriction
usage consumption utilization
size volume disk large
memory ram
cpu processor
network net connection
dns domain hostname
song track music tune
playlist mixtape
play listen hear
skip next forward
volume loud louder quiet
recommend recommendation suggest suggestion similar
artist singer band
address location street
coordinates latitude longitude lat long lng geocode
route directions way path navigation itinerary
traffic congestion jam
elevation altitude height
nearby near around close
restaurant cafe food eat dining
flight plane airplane airfare aircraft
hotel room accommodation lodging
car vehicle automobile
rent hire rental lease
baggage luggage suitcase bag
train rail railway
visa passport entry
seat place
ticket fare
light lamp bulb
thermostat heating temperature heat
lock unlock secure
vacuum hoover cleaner
garage door gate
camera webcam
alarm burglar security intrusion
recipe dish meal cooking cook
ingredient food grocery groceries
nutrition calories nutrients diet
substitute replacement alternative replace
wine drink beverage pairing
serving portion
text string words content
summary summarize digest abstract gist tldr overview
rephrase reword paraphrase rewrite
grammar spelling proofread
language tongue
sign signature esign
protect encrypt password
watermark stamp
rotate turn
page sheet
model classifier network
train fit
dataset data corpus
embedding vector
hyperparameter tune optimize optimise
inference prediction predict
label annotate annotation
health status alive up uptime
backup snapshot archive
restore recover undo
archive close retire
`

// synonyms maps the stem of each word in alike to the stems of the other words in its groups.
func synonyms() map[string][]string {
	groups := map[string][]string{}
	for line := range strings.Lines(alike) {
		stems := words(line)
		for _, stem := range stems {
			for _, other := range stems {
				if other != stem {
					groups[stem] = append(groups[stem], other)
				}
			}
		}
	}
	return groups
}
