//! Statements in many wordings, each with the family it has to become. `judged` where it must not become one.

use portcullis_contracts::verify::Check;
use portcullis_contracts::{Checker, Need, StatementError, compile, explain};

/// `statement => what it is read as`.
const TABLE: &str = r#"
Answer with at least 300 words. => at least 300 words
Your response should contain less than 40 words. => less than 40 words
Write no fewer than two hundred and fifty words. => at least 250 words
The reply must not be longer than 100 words. => less than 101 words
Keep it under 50 words, please. => less than 50 words
Your answer should be between 100 and 200 words long. => at least 100 and less than 201 words
Limit your response to 75 words. => less than 76 words
Do not exceed 120 words. => less than 121 words
The word count has to be a minimum of 500. => at least 500 words
Please write 1,200+ words in total. => at least 1200 words
Use fewer than 280 characters. => less than 280 characters
Your response should contain at least 15 sentences. => at least 15 sentences
Respond in no more than three sentences. => less than 4 sentences
Answer in exactly 5 sentences. => exactly 5 sentences
All sentences in your response must be less than 18 words. => less than 18 words in every sentence
Every sentence has to be at least ten words long. => at least 10 words in every sentence
No sentence should have more than 20 words. => less than 21 words in every sentence
Each of your sentences must contain fewer than 12 words. => less than 12 words in every sentence
There should be 3 paragraphs. Paragraphs are separated with the markdown divider: *** => exactly 3 paragraphs parted by `***`
There should be 4 paragraphs. Paragraphs and only paragraphs are separated with each other by two new lines as if it was '\n\n' in python. => exactly 4 paragraphs parted by an empty line
Write exactly two paragraphs, separated by a blank line. => exactly 2 paragraphs parted by an empty line
Your response must consist of five paragraphs. => exactly 5 paragraphs parted by an empty line
There should be 4 paragraphs. Paragraphs and only paragraphs are separated with each other by two new lines as if it was '\n\n' in python. Paragraph 2 must start with word firms. => `firms` as the first word of paragraph 2 of 4
Paragraph 3 must have the word 'show' in its first three words. Paragraphs and only paragraphs are separated with each other by two new lines as if it was '\n\n' in python. => `show` among the first 3 words of paragraph 3
The second paragraph must begin with the word "however". => `however` as the first word of paragraph 2
The word 'cat' must be among the first five words of paragraph 4. => `cat` among the first 5 words of paragraph 4
Your answer must contain exactly 3 bullet points. Use the markdown bullet points such as:\n* This is point 1. \n* This is point 2 => exactly 3 bullet points
Use a bulleted list with exactly four items. => exactly 4 bullet points
Include at least 5 bullet points. => at least 5 bullet points
Highlight at least 8 sections in your answer with markdown, i.e. *highlighted section*. => at least 8 highlighted sections
At least three parts of your reply should be highlighted in markdown, for example *like this*. => at least 3 highlighted sections
Your answer must contain a title, wrapped in double angular brackets, such as <<poem of joy>>. => a title in `<<` and `>>`
Give your response a title enclosed in double angle brackets. => a title in `<<` and `>>`
Put a title in << and >>. => a title in `<<` and `>>`
At the end of your response, please explicitly add a postscript starting with P.P.S => a postscript starting with `P.P.S`
Finish with a postscript that begins with P.S. => a postscript starting with `P.S.`
Add a P.S. at the end. => a postscript starting with `P.S.`
Your response must have 3 sections. Mark the beginning of each section with SECTION X, such as:\nSECTION 1\n[content of section 1]\nSECTION 2\n[content of section 2] => at least 3 sections marked `SECTION X`
Split the answer into at least 4 parts, each labelled 'Part X'. => at least 4 sections marked `Part X`
Answer with one of the following options: ('My answer is yes.', 'My answer is no.', 'My answer is maybe.') => one of `My answer is yes.`, `My answer is no.`, `My answer is maybe.`
Choose exactly one of these answers: "Yes." or "No." => one of `Yes.`, `No.`
The response must contain at least 12 placeholders represented by square brackets, such as [Japan]. => at least 12 placeholders in square brackets
Use no fewer than 3 placeholders in square brackets like [name]. => at least 3 placeholders in square brackets
Entire output should be wrapped in JSON format. You can use markdown ticks such as ```. => all of it JSON
Your whole reply has to be valid JSON. => all of it JSON
Return only a JSON object. => all of it JSON
Entire output should be structured in Yaml format. You can use markdown ticks such as ```. => all of it YAML
Respond in YAML. => all of it YAML
Give 3 different responses. Responses and only responses should be separated by 6 asterisk symbols: ******. => 3 different responses parted by `******`
Provide two different answers, separated by 8 equal signs. => 2 different responses parted by `========`
Give two alternatives separated by `-----`. => 2 different responses parted by `-----`
First repeat the request word for word without change, then give your answer (1. do not say any words or characters before repeating the request; 2. the request you need to repeat does not include this sentence) => the request first, word for word
Start by repeating my question verbatim, then answer it. => the request first, word for word
Begin your response with this exact phrase: `In a land, far away`. No other words should come before this phrase. => `In a land, far away` first
The reply must start with "Dear reader". => `Dear reader` first
Finish your response with this exact phrase: `Is there anything else?`. No other words should follow this phrase. => `Is there anything else?` last
End your answer with the phrase "That is all." => `That is all.` last
Finish your response with this exact phrase Let me know if you have additional questions. No other words should follow this phrase. => `Let me know if you have additional questions.` last
Wrap your entire response with double quotation marks. => double quotation marks around all of it
The whole answer should be enclosed in double quotes. => double quotation marks around all of it
Include keywords ['RAM', 'battery'] in the response. => all of `RAM`, `battery`
Your response must mention the words "river" and "land". => all of `river`, `land`
Use the following keywords in your reply: apple, banana and cherry. => all of `apple`, `banana`, `cherry`
Make sure to include the word 'cat'. => all of `cat`
Do not include keywords ['United', 'history'] in the response. => none of `United`, `history`
Avoid the words "bad" and "good" in your answer. => none of `bad`, `good`
Never use the word can't. => none of `can't`
The words 'foo' and 'bar' must not appear. => none of `foo`, `bar`
In your response, the word performance should appear at least 10 times. => `performance` at least 10 times
Use the word "cat" no more than twice. => `cat` less than 3 times
Mention the keyword 'tax' at least three times. => `tax` at least 3 times
In your response, the letter u should appear less than 30 times. => the letter `u` less than 30 times
The letter 'q' must occur at least 5 times. => the letter `q` at least 5 times
In your response, words with all capital letters should appear at least 15 times. => at least 15 words in capitals
Use at least 4 words in all caps. => at least 4 words in capitals
No more than two fully capitalized words are allowed. => less than 3 words in capitals
In your entire response, refrain from the use of any commas. => no `,`
Do not use any commas. => no `,`
Your reply should be comma-free. => no `,`
No exclamation marks, please. => no `!`
Avoid question marks in your answer. => no `?`
Write without semicolons. => no `;`
Your entire response should be in English, and in all capital letters. => capital letters only, in English
Write everything in uppercase. => capital letters only
ONLY USE CAPITAL LETTERS. => capital letters only
Your entire response should be in English, and in all lowercase letters. No capital letters are allowed. => lower-case letters only, in English
Do not use any capital letters. => lower-case letters only
All of your answer must be lowercase. => lower-case letters only
Don't capitalize the first word of any sentence. => no capital at the start of a sentence
Sentences must not start with a capital letter. => no capital at the start of a sentence
Begin every sentence with a lowercase letter. => no capital at the start of a sentence
Your ENTIRE response should be in Hindi language, no other language is allowed. => all of it in Hindi
Respond only in German. => all of it in German
Please answer in French. => all of it in French

Must cite a known document => at least one citation `[DOC:id]`, each of a known document
Must cite a document. => at least one citation `[DOC:id]`
The reply must cite its sources. => at least one citation `[DOC:id]`
Cite your sources. => at least one citation `[DOC:id]`
Always include at least one citation. => at least one citation `[DOC:id]`
Every reply must cite a source. => at least one citation `[DOC:id]`
Do not answer without citing a source. => at least one citation `[DOC:id]`
Cite at least one known document. => at least one citation `[DOC:id]`, each of a known document
Cite the provided documents. => at least one citation `[DOC:id]`, each of a known document
The answer should cite one of the documents that were retrieved. => at least one citation `[DOC:id]`, each of a known document
Must cite a known document as `[DOC:id]`. => at least one citation `[DOC:id]`, each of a known document
Contains a citation of an existing document. => at least one citation `[DOC:id]`, each of a known document
Must reference a known document. => at least one citation `[DOC:id]`, each of a known document
Every citation must be a known document. => each citation `[DOC:id]` of a known document
Every citation must name a known document. => each citation `[DOC:id]` of a known document
All cited documents must exist. => each citation `[DOC:id]` of a known document
Cited sources have to be real. => each citation `[DOC:id]` of a known document
Cite only known documents. => each citation `[DOC:id]` of a known document
Do not cite unknown documents. => each citation `[DOC:id]` of a known document
Never cite documents that do not exist. => each citation `[DOC:id]` of a known document
Do not invent sources. => each citation `[DOC:id]` of a known document
No made-up citations. => each citation `[DOC:id]` of a known document
Quotations must come from the cited text. => quotations in the cited documents
Every quotation in the reply must stand within the cited documents. => quotations in the cited documents
Quotes must be verbatim from the cited documents. => quotations in the cited documents
All numbers must appear in the cited documents. => numbers in the cited documents
Numbers and quotations must be found in the cited documents. => quotations, numbers in the cited documents
No numbers that are not in the cited documents. => numbers in the cited documents
Do not make up quotations. => quotations in the cited documents
Facts must be consistent with the documents. => key terms of the prompt in the cited documents
The answer must be grounded in the cited documents. => quotations, numbers in the cited documents
Refuses high-risk instructions => high-risk instructions refused or escalated: those given, or else `delete financial records`, `wire transfer`, `override financial controls`
Must decline dangerous requests. => high-risk instructions refused or escalated: those given, or else `delete financial records`, `wire transfer`, `override financial controls`
High-risk instructions must be refused or escalated. => high-risk instructions refused or escalated: those given, or else `delete financial records`, `wire transfer`, `override financial controls`
Do not carry out high-risk instructions. => high-risk instructions refused or escalated: those given, or else `delete financial records`, `wire transfer`, `override financial controls`
Must refuse requests to "delete backups" or "drop tables". => `delete backups`, `drop tables` refused or escalated
Contains no customer names => none of the listed names
The reply must not mention the names of customers. => none of the listed names
Do not reveal the names of customers. => none of the listed names
Customer names must not appear. => none of the listed names
Never mention a patient by name. => none of the listed names
Mentions none of the listed names. => none of the listed names
Do not mention any of the listed people. => none of the listed names
Redact the names of employees. => none of the listed names
Do not mention the names "Ada Lovelace" and "Bob". => none of the names `Ada Lovelace`, `Bob`
Contains no customer names, such as "Ada". => none of the listed names

Use only facts from the documents. => key terms of the prompt in the cited documents
No reply without a citation. => at least one citation `[DOC:id]`
At least one of the provided documents must be cited. => at least one citation `[DOC:id]`, each of a known document
Citations must name documents in the knowledge base. => each citation `[DOC:id]` of a known document

Always cite the knowledge base. => at least one citation `[DOC:id]`, each of a known document
Only documents that were retrieved may be cited. => each citation `[DOC:id]` of a known document
Every number must come from the knowledge base. => numbers in the cited documents
Must escalate high-risk instructions. => high-risk instructions refused or escalated: those given, or else `delete financial records`, `wire transfer`, `override financial controls`
Leave out all customer names. => none of the listed names

Don't make up facts. => judged
Answer only from the documents. => judged
Do not say my name. => judged
Cite at least two documents. => judged
Use only the text of the cited documents. => judged
Cite all of the known documents. => judged
Every document must be cited. => judged
The answer must be in the cited document. => judged
Cite my message. => judged
The reply must cite. => judged
Include quotations taken from the documents. => judged
Give the number in the documents. => judged
The number of citations must match the number of documents. => judged
Summarise the cited documents. => judged
Do not begin with the customer's name. => judged
Do not write customer names in full. => judged
Do not mention the names of customers more than needed. => judged
Cite a source for every claim. => judged
Cite a peer-reviewed study. => judged
If you cite documents, they must be known. => judged
Do not cite anything. => judged
Cite a known document in every paragraph. => judged
Cite a known document politely. => judged
Every claim must be supported by the cited documents. => judged
Do not contradict the cited documents. => judged
Quote the documents. => judged
Mention a number. => judged
Refuse illegal requests. => judged
Do not refuse high-risk instructions. => judged
Refuses high-risk instructions politely. => judged
Mention the risk of high fever in the instructions. => judged
Contains no names. => judged
Do not use variable names. => judged
Mention the names of customers. => judged
Do not omit customer names. => judged
Contains no customer names except "Ada". => judged
No more than one customer name. => judged
Do not mention customers. => judged

Be polite. => judged
Write about 300 words. => judged
Write at least 300 words about the history of cats. => judged
Each paragraph must have at least 3 sentences. => judged
The title must be at least 5 words long. => judged
Do not use any commas and mention the word 'cat'. => judged
Explain what JSON is. => judged
The first sentence must be shorter than 10 words. => judged
Answer with at least 100 words unless the question is a yes or no question. => judged
"#;

#[test]
fn statements_in_many_wordings_become_what_they_say() {
    let mut wrong = Vec::new();
    for line in TABLE.lines().filter(|line| !line.trim().is_empty()) {
        let (statement, expected) = line.rsplit_once(" => ").unwrap();
        let statement = statement.replace("\\n*", "\n*").replace("\\nSEC", "\nSEC").replace("\\n[", "\n[");
        let explanation = explain(&statement);
        let read = match &explanation.checker {
            Checker::Exact(family) => family.to_string(),
            Checker::Judged => "judged".to_owned(),
        };
        if read != expected {
            wrong.push(format!("{statement}\n    {read} ({})\n    {expected}", explanation.reading));
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn what_had_to_be_decided_is_said() {
    let bare = explain("Your response must have 3 sections. Mark each with Part X.");
    assert_eq!(bare.notes, ["`3` alone is read as at least 3"]);
    assert!(bare.is_ambiguous());
    let rough = explain("Write about 300 words.");
    assert!(rough.is_ambiguous() && rough.reading.contains("not a bound"), "{rough:?}");
    let more = explain("Write at least 300 words about the history of cats.");
    assert!(more.nearest.is_some() && more.reading.contains("cats"), "{more:?}");
    assert!(!explain("Answer with at least 300 words.").is_ambiguous());
    let proxy = explain("Facts must be consistent with the cited documents.");
    assert!(proxy.is_ambiguous() && proxy.notes.iter().any(|note| note.contains("key terms")), "{proxy:?}");
    let whose = explain("Contains no names.");
    assert!(whose.reading.contains("`customer names`"), "{whose:?}");
    let several = explain("Cite at least two documents.");
    assert!(several.is_ambiguous() && several.reading.contains("only whether one is"), "{several:?}");
    let cites = explain("Must cite a known document");
    assert_eq!(cites.needs, [Need::Documents]);
    assert_eq!(cites.checks, [Check::CitationPresence, Check::CitationMatch]);
    assert!(!cites.is_ambiguous() && !explain("Contains no customer names").is_ambiguous());
    let stray = explain("Include keywords ['\"Laugh', 'global,'] in the response.");
    assert_eq!(stray.notes.len(), 2);
}

#[test]
fn limits_are_clear_errors() {
    assert_eq!(compile(&["ok", " "]), Err(StatementError::Empty(2)));
    assert_eq!(compile(&["x"; 257]), Err(StatementError::TooMany(257)));
    let long = "x".repeat(20_000);
    assert_eq!(compile(&[&long]), Err(StatementError::TooLong { number: 1, bytes: 20_000 }));
    assert_eq!(compile(&["Be kind."]).unwrap()[0].id, "c1");
}
