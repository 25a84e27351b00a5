//! How long it takes to read the effects of code as an agent writes it that answers questions about tables: a few
//! lines, a usual answer, and a long program with functions, loops and branches.

use std::collections::BTreeMap;
use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use portcullis_core::bundle::Bundle;
use portcullis_core::effect::Effects;
use portcullis_effects::{Sink, Surroundings, code};

const FILES: [(&str, &str); 4] = [
    ("portcullis.toml", "version = 1\n"),
    ("policies/p.toml", "[[policy]]\nname = 'p'\nallowed_types = []\nmax_steps = 1\nmax_side_effects = 0\n"),
    (
        "tables/t.toml",
        "[[table]]\nname = 'customers'\ncolumns = ['id', 'name', 'email', 'born', 'city']\n\
         [[table]]\nname = 'orders'\ncolumns = ['id', 'customer', 'total', 'placed', 'note']\n\
         [[table]]\nname = 'stock'\ncolumns = ['item', 'amount', 'shelf']\n",
    ),
    (
        "functions/f.toml",
        "[[function]]\nname = 'LoadDB'\ndoes = 'load-table'\n[[function]]\nname = 'FilterDB'\ndoes = 'filter-table'\n\
         [[function]]\nname = 'GetValue'\ndoes = 'get-value'\n[[function]]\nname = 'SQLInterpreter'\ndoes = 'run-sql'\n",
    ),
];

const SMALL: &str = "\
db = LoadDB('customers')
some = FilterDB(db, 'name=Ada||city=Oslo')
answer = GetValue(some, 'born')
";

const USUAL: &str = "\
# Customers of one city, their orders, and what they ordered last.
customer_db = LoadDB('customers')
filtered = FilterDB(customer_db, 'city=Oslo||born<1990-01-01')
ids = GetValue(filtered, 'id, list')
order_db = LoadDB('orders')
totals = []
for one in ids.split(', '):
    mine = FilterDB(order_db, 'customer={}||max(placed)'.format(one))
    totals.append(float(GetValue(mine, 'total')))
if len(totals) > 0:
    answer = f'{sum(totals) / len(totals):.2f}'
else:
    answer = SQLInterpreter('select avg(total) from orders where note is null')
print(answer)
";

/// Functions, a class, loops and branches around the usual program.
fn long() -> String {
    let mut text = String::from("import datetime\nimport pandas as pd\n\n");
    for number in 0..8 {
        text += &format!(
            "def step_{number}(name, column, conditions=None):\n\
             \x20   table = LoadDB(name)\n\
             \x20   for condition in conditions or ['id={number}', 'name=' + str({number})]:\n\
             \x20       table = FilterDB(table, condition)\n\
             \x20   try:\n\
             \x20       value = GetValue(table, '{{}}, max'.format(column))\n\
             \x20   except KeyError:\n\
             \x20       value = None\n\
             \x20   return value if value is not None else 0\n\n"
        );
    }
    text += "class Report:\n    lines = []\n    def add(self, line):\n        self.lines.append(line)\n\n";
    text += "report = Report()\nwhen = datetime.datetime.now()\n";
    let columns = [("customers", "born"), ("orders", "total"), ("stock", "amount")];
    for (number, (table, column)) in columns.into_iter().cycle().take(24).enumerate() {
        text += &format!(
            "value_{number} = step_{}('{table}', '{column}')\n\
             if value_{number}:\n    report.add(f'{{when}}: {column} {{value_{number}}}')\n",
            number % 8
        );
    }
    text + USUAL
}

fn read(c: &mut Criterion) {
    let files: BTreeMap<String, Vec<u8>> =
        FILES.into_iter().map(|(path, text)| (path.to_owned(), text.as_bytes().to_vec())).collect();
    let Ok(bundle) = Bundle::load(&files) else { return };
    let surroundings =
        Surroundings { settings: &bundle.effects, workspace: None, home: None, directory: None };
    let mut group = c.benchmark_group("code");
    for text in [SMALL.to_owned(), USUAL.to_owned(), long()] {
        let mut effects = Effects::none();
        code::read(&text, &surroundings, &mut Sink::new(&mut effects, "/arguments/code"));
        let name = format!("{} bytes, {} effects", text.len(), effects.iter().count());
        group.throughput(Throughput::Bytes(text.len() as u64));
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                let mut effects = Effects::none();
                let mut sink = Sink::new(&mut effects, "/arguments/code");
                code::read(black_box(&text), &surroundings, &mut sink);
                effects
            });
        });
    }
    group.finish();
}

criterion_group!(benches, read);
criterion_main!(benches);
