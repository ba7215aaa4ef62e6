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
delete remove drop erase discard clear destroy
get fetch read retrieve show view display load
list enumerate all browse
find search look lookup query locate seek
update edit modify change set alter patch adjust
send post submit publish write message
run execute invoke launch perform
stop cancel abort halt kill terminate end
move rename transfer
copy duplicate clone
repository repo project
directory dir folder
document doc page
message msg mail email
database db
configuration config settings setting options
environment env
image picture photo img
pull request pr merge
issue ticket bug task
user person member people account
picture screenshot capture
calendar event meeting appointment schedule
weather forecast temperature
convert transform translate
calculate compute math evaluate
statistics stats metrics
authenticate login auth
information info details
application app
channel room conversation
comment reply note remark
upload attach
download export save
web internet website url link
table spreadsheet sheet
sql statement
order purchase buy
customer client contact
invoice bill
price cost quote
time date clock
kubernetes k8s
container docker
process job
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
