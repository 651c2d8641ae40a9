//! Runs that are interrupted: by a signal, by a kill, and by somebody who changes something meanwhile.
#![cfg(unix)]

mod common;
mod rows;

use common::*;
use rows::{Files, Numbers, Target};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

fn start(arguments: &str) -> Child {
    Command::new(SEMIDP)
        .args(arguments.split_whitespace())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn signal(child: &Child, name: &str) {
    let sent = Command::new("kill").args([&format!("-{name}"), &child.id().to_string()]).status();
    assert!(sent.unwrap().success());
}

/// Waits until a run has done some steps.
fn wait_for_steps(files: &Files, checkpoint: &str) {
    let deadline = Instant::now() + Duration::from_secs(120);
    while Instant::now() < deadline {
        let done = std::fs::read_to_string(files.folder.join(checkpoint)).ok().and_then(|text| {
            serde_json::from_str::<serde_json::Value>(text.lines().next()?).ok()?["done"].as_u64()
        });
        if done.is_some_and(|done| done >= 3) {
            return;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    panic!("no checkpoint of a third step");
}

/// An interrupted run of many steps; its command without `--resume`.
fn interrupted(files: &Files, by: &str) -> String {
    interrupted_with(files, by, "")
}

fn interrupted_with(files: &Files, by: &str, options: &str) -> String {
    let command = format!("{} {options}", files.paid().replace("--steps 20", "--steps 900"));
    // Often, so that it can be seen at its third step; how often makes no difference to what it is.
    let child = start(&format!("{command} --seed 5 --checkpoint-every 0"));
    wait_for_steps(files, "model.json.checkpoint");
    signal(&child, by);
    let ran: Ran = child.wait_with_output().unwrap().into();
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    let mut last = ran.stderr.lines().rev();
    let (hint, error) = (last.next().unwrap(), last.next().unwrap());
    assert!(error.starts_with("error: interrupted after step "), "{error}");
    assert!(error.contains(" of 900") && hint.contains("--resume"), "{error} {hint}");
    command
}

fn resumed(files: &Files, command: &str) -> Ran {
    run(&format!("{command} --resume {}", files.path("model.json.checkpoint")))
}

/// Ctrl-C and SIGTERM end a run after the step that is under way; it goes on to the very bits of a run that nobody
/// interrupted, and leaves nothing but the model.
#[test]
fn signals_leave_a_checkpoint() {
    for (by, name) in [("INT", "interrupted-int"), ("TERM", "interrupted-term")] {
        let files = Files::new(name, Target::TwoWords);
        let command = interrupted(&files, by);
        let before = ["model.json.checkpoint", "model.json.checkpoint.key"];
        let there = entries(&files.folder);
        assert!(before.iter().all(|name| there.contains(&name.to_string())), "{there:?}");
        assert!(
            !there.contains(&"model.json".to_string()) && !there.iter().any(|name| name.ends_with("tmp"))
        );
        use std::os::unix::fs::PermissionsExt;
        for name in before {
            let mode = std::fs::metadata(files.folder.join(name)).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{name}");
        }
        // Neither a second run in its place, nor with its key.
        refused(&command, &["checkpoint", "is there already"]);
        // Threads make no difference.
        let ran = resumed(&files, &format!("{command} --threads 1"));
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        let model = files.text("model.json");
        let there = entries(&files.folder);
        assert_eq!(there, ["model.json", "private.csv", "public.csv", "test.csv"]);
        let whole = run(&format!("{command} --seed 5"));
        assert_eq!(whole.code, 0, "{}", whole.stderr);
        assert_eq!(files.text("model.json"), model);
    }
}

/// A run goes on only as what it was. Every difference is named; nothing is lost, so that it can go on afterwards.
#[test]
fn another_run_is_refused() {
    let files = Files::new("interrupted-other", Target::TwoWords);
    let command = interrupted(&files, "TERM");
    let checkpoint = files.path("model.json.checkpoint");
    let differs = |command: &str, words: &[&str]| {
        let ran = resumed(&files, command);
        check_refusal(command, &ran, &[&["this is not the run that the checkpoint is of"], words].concat());
    };
    differs(&command.replace("--steps 900", "--steps 899"), &["steps was 900 and is 899"]);
    differs(&command.replace("--epsilon 4", "--epsilon 3.9"), &["budget was ", "3.9"]);
    differs(&command.replace("--delta 1e-5", "--delta 1.00001e-5"), &["budget was "]);
    differs(
        &format!("{command} --adjacency add-remove --sample-rate 0.02 --expected-batch 18"),
        &["adjacency was "],
    );
    differs(&format!("{command} --learning-rate 0.1"), &["sampling was "]);
    differs(&format!("{command} --clip-norm 7"), &["clip-norm was "]);
    differs(&format!("{command} --alpha 0.5"), &["sampling was "]);
    differs(&format!("{command} --algorithm dp-sgd"), &["algorithm was \"auto\" and is \"dp-sgd\""]);
    differs(&format!("{command} --l2 0.5"), &[" was "]);
    differs(&format!("{command} --no-intercept"), &["intercept was true and is false"]);
    differs(&format!("{command} --columns a,b"), &["column colour was"]);
    // Rows: one private value, one private row fewer, one public value.
    let (private, public) = (files.text("private.csv"), files.text("public.csv"));
    let last = private.trim_end().rfind('\n').unwrap();
    let mut lines: Vec<String> = private.lines().map(String::from).collect();
    lines[400] = lines[400].replacen("red", "blue", 1).replacen("green", "red", 1);
    files.write("private.csv", &lines.join("\n"));
    differs(&command, &["the private rows are not those that it began with"]);
    files.write("private.csv", &private[..last]);
    differs(&command, &["private rows was 900"]);
    files.write("private.csv", &private);
    files.write("public.csv", &public.replacen("red", "blue", 1));
    differs(&command, &[" was "]);
    files.write("public.csv", &public);
    // A checkpoint that was edited, in its state, its steps, and its run.
    let text = std::fs::read_to_string(&checkpoint).unwrap();
    let digits = text.find("\"update\":[\"").unwrap() + 12;
    let flipped = if &text[digits..=digits] == "0" { "1" } else { "0" };
    let edited = format!("{}{flipped}{}", &text[..digits], &text[digits + 1..]);
    let seal = text.find("\"seal\":\"").unwrap() + 8;
    let unsealed = format!("{}{}{}", &text[..seal], "00000000", &text[seal + 8..]);
    for (edited, words) in [
        (edited, "changed after it was written"),
        (unsealed, "changed after it was written"),
        (text.replacen("\"done\":", "\"done\":1", 1), "changed after it was written"),
        (text.replacen("checkpoint/1", "checkpoint/9", 1), "format semidp-checkpoint/9"),
        (text[..text.len() / 2].to_string(), "damaged"),
        (String::new(), "damaged"),
    ] {
        std::fs::write(&checkpoint, edited).unwrap();
        check_refusal(&command, &resumed(&files, &command), &[words]);
    }
    std::fs::write(&checkpoint, &text).unwrap();
    // A key that others may read, that is damaged, or gone.
    let key = files.folder.join("model.json.checkpoint.key");
    let secret = std::fs::read_to_string(&key).unwrap();
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o644)).unwrap();
    check_refusal(&command, &resumed(&files, &command), &["mode 0600"]);
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();
    std::fs::write(&key, &secret[..40]).unwrap();
    check_refusal(&command, &resumed(&files, &command), &["damaged"]);
    std::fs::remove_file(&key).unwrap();
    check_refusal(&command, &resumed(&files, &command), &["no key file beside it"]);
    std::fs::write(&key, &secret).unwrap();
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();
    // After all that the run is still there.
    let ran = resumed(&files, &command);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(!ran.stdout.contains(secret.lines().last().unwrap()));
}

/// Public rows, so many times.
fn within_public_ranges(public: &str, times: usize) -> String {
    let (header, body) = public.split_once('\n').unwrap();
    format!("{header}\n{}", body.repeat(times))
}

/// Parameters of losses and domains, and public rows that are no gradients, count as much as anything else: with every
/// other hyper-parameter given, nothing but themselves would tell.
#[test]
fn everything_that_iterates_depend_on_is_sealed() {
    let fixed = "--clip-norm 1 --learning-rate 0.05 --warm-start none --task regression";
    let semi = format!("{fixed} --alpha 0.5 --loss huber:1.3 --domain ball:5");
    let mirror = format!("{fixed} --algorithm pda-md --loss huber:2");
    let files = Files::new("interrupted-parts", Target::Number);
    // Private rows within the ranges of the public ones pass a strict check.
    files.write("private.csv", &within_public_ranges(&files.text("public.csv"), 15));
    let command = interrupted_with(&files, "TERM", &semi);
    for (before, after, words) in [
        ("huber:1.3", "huber:1.4", "loss was"),
        ("ball:5", "ball:4.9", "domain was"),
        ("--domain ball:5", "--domain ball:5 --strict", "strict was false and is true"),
        ("--alpha 0.5", "--alpha 0.6", "alpha was"),
    ] {
        let ran = resumed(&files, &command.replace(before, after));
        check_refusal(&command, &ran, &["this is not the run", words]);
    }
    assert_eq!(resumed(&files, &command).code, 0);
    std::fs::remove_file(files.folder.join("model.json")).unwrap();
    // Two public labels change places: no statistic of a column moves.
    let command = interrupted_with(&files, "TERM", &mirror);
    let public = files.text("public.csv");
    let mut lines: Vec<String> = public.lines().map(String::from).collect();
    let place = |line: &str| line.rfind(',').unwrap() + 1;
    let (a, b) = (place(&lines[1]), place(&lines[2]));
    let (first, second) = (lines[1].split_off(a), lines[2].split_off(b));
    lines[1].push_str(&second);
    lines[2].push_str(&first);
    files.write("public.csv", &lines.join("\n"));
    let ran = resumed(&files, &command);
    check_refusal(&command, &ran, &["this is not the run", "content of all public rows was"]);
    files.write("public.csv", &public);
    assert_eq!(resumed(&files, &command).code, 0);
}

/// Killed at random moments, again and again: every run ends in the same bits, and is debited once. Each has a data set
/// whose budget it spends whole, so that a second debit would be refused.
///
/// A dozen runs here; `SEMIDP_KILLS=100` makes it a hundred.
#[test]
fn killed_runs_end_in_the_same_bits() {
    let files = Files::new("killed", Target::TwoWords);
    let base = format!("{} --seed 8 --checkpoint-every 0", files.paid().replace("--steps 20", "--steps 150"));
    // The two ways to go on from something: a filter's many numbers, and an iterate with its average.
    let whole = ["optimal-gain", "semi-dp-sgd"].map(|algorithm| {
        let command = format!("{base} --algorithm {algorithm}");
        // The first may find a cold or busy machine; a kill should come before the end.
        let lengths = [0; 2].map(|_| {
            let begun = Instant::now();
            let whole = run(&command);
            assert_eq!(whole.code, 0, "{}", whole.stderr);
            begun.elapsed()
        });
        (command, lengths[0].min(lengths[1]), files.text("model.json"))
    });
    let runs: usize = std::env::var("SEMIDP_KILLS").map_or(12, |count| count.parse().unwrap());
    let mut moments = Numbers(11);
    let (mut kills, mut resumes) = (0, 0);
    let ledger = files.path("budget.ledger");
    for number in 0..runs {
        let (command, length, expected) = &whole[number % 2];
        std::fs::remove_file(files.folder.join("model.json")).unwrap();
        let account = format!("--ledger {ledger} --dataset rows-{number}");
        let set = run(&format!("ledger init {account} --epsilon 4 --delta 1e-5"));
        assert_eq!(set.code, 0, "{}", set.stderr);
        loop {
            let can_resume = files.folder.join("model.json.checkpoint").exists();
            resumes += usize::from(can_resume);
            let resume = format!(" --resume {}", files.path("model.json.checkpoint"));
            let mut child = start(&format!("{command} {account}{}", if can_resume { &resume } else { "" }));
            std::thread::sleep(length.mul_f64(0.5 * (moments.draw() + 1.0)));
            let is_over = child.try_wait().unwrap().is_some();
            if is_over {
                let ran: Ran = child.wait_with_output().unwrap().into();
                assert_eq!(ran.code, 0, "{}", ran.stderr);
                break;
            }
            child.kill().unwrap();
            child.wait().unwrap();
            kills += 1;
            if files.folder.join("model.json").exists() {
                // The model was there, and perhaps not all tidied up.
                for name in ["model.json.checkpoint", "model.json.checkpoint.key"] {
                    let _ = std::fs::remove_file(files.folder.join(name));
                }
                break;
            }
        }
        assert_eq!(&files.text("model.json"), expected, "run {number}");
    }
    println!("{runs} runs, {kills} kills, {resumes} resumes");
    let shown = json(&format!("ledger show --ledger {ledger}"));
    let accounts = shown["datasets"].as_array().unwrap();
    assert_eq!(accounts.len(), runs);
    assert!(accounts.iter().all(|account| account["debits"].as_array().unwrap().len() == 1), "{shown}");
    assert!(kills >= runs / 2 && resumes >= runs / 4, "{kills} kills, {resumes} resumes");
    let there: Vec<String> =
        entries(&files.folder).into_iter().filter(|name| !name.starts_with("budget.ledger")).collect();
    assert_eq!(there, ["model.json", "private.csv", "public.csv", "test.csv"]);
}

/// Many at once on one ledger: as many are granted as its budget covers, the others end with exit code 3 and leave
/// nothing.
#[test]
fn runs_at_once_share_one_budget() {
    let files = Files::new("interrupted-at-once", Target::TwoWords);
    let ledger = files.path("budget.ledger");
    let set = run(&format!("ledger init --ledger {ledger} --dataset rows --rho 0.3 --delta 1e-5"));
    assert_eq!(set.code, 0, "{}", set.stderr);
    // Three of rho 0.1 fit.
    let children: Vec<Child> = (0..7)
        .map(|number| {
            let out = files.path(&format!("model-{number}.json"));
            let command = files.unpaid().replace(&files.path("model.json"), &out);
            start(&format!("{command} --rho 0.099999 --delta 1e-5 --ledger {ledger} --dataset rows"))
        })
        .collect();
    let ended: Vec<Ran> =
        children.into_iter().map(|child| child.wait_with_output().unwrap().into()).collect();
    let granted = ended.iter().filter(|ran| ran.code == 0).count();
    assert_eq!(granted, 3, "{:?}", ended.iter().map(|ran| &ran.stderr).collect::<Vec<_>>());
    for ran in ended.iter().filter(|ran| ran.code != 0) {
        assert_eq!(ran.code, 3, "{}", ran.stderr);
        assert!(ran.stderr.contains("privacy budget"), "{}", ran.stderr);
    }
    let shown = json(&format!("ledger show --ledger {ledger}"));
    assert_eq!(shown["datasets"][0]["debits"].as_array().unwrap().len(), 3);
    assert!(number(&shown, "/datasets/0/spent/rho") <= 0.3);
    let models = entries(&files.folder).into_iter().filter(|name| name.starts_with("model-"));
    assert_eq!(models.count(), 3);
}

/// A run that began with a ledger goes on with the same one.
#[test]
fn the_ledger_is_part_of_a_run() {
    let files = Files::new("interrupted-ledger", Target::TwoWords);
    let ledger = files.path("budget.ledger");
    let account = format!("--ledger {ledger} --dataset rows");
    let set = run(&format!("ledger init {account} --epsilon 4 --delta 1e-5"));
    assert_eq!(set.code, 0, "{}", set.stderr);
    let command = files.paid().replace("--steps 20", "--steps 900");
    let child = start(&format!("{command} {account} --seed 5 --checkpoint-every 0"));
    wait_for_steps(&files, "model.json.checkpoint");
    signal(&child, "TERM");
    child.wait_with_output().unwrap();
    check_refusal(&command, &resumed(&files, &command), &["ledger was", "and is null"]);
    let ran = resumed(&files, &format!("{command} {account}"));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    // Spent: a second run is refused, and leaves nothing.
    let again = run(&format!("{command} {account}"));
    assert_eq!(again.code, 3, "{}", again.stderr);
    assert!(!entries(&files.folder).iter().any(|name| name.contains("checkpoint")));
    let opened = format!("{} --algorithm non-private {account}", files.unpaid());
    refused(&opened, &["--ledger must be left out"]);
}

/// What spends nothing keeps nothing; a run that is refused leaves nothing.
#[test]
fn nothing_is_left_where_nothing_was_spent() {
    let files = Files::new("interrupted-nothing", Target::TwoWords);
    let at = files.path("model.json.checkpoint");
    refused(
        &format!("{} --algorithm throw-away --resume {at}", files.paid()),
        &["--resume must be left out"],
    );
    refused(&format!("{} --resume {at}", files.paid()), &["cannot be read"]);
    refused(&format!("{} --resume {at} --checkpoint x", files.paid()), &["--checkpoint"]);
    refused(&format!("{} --checkpoint-every -1", files.paid()), &["checkpoint-every"]);
    refused(&format!("{} --checkpoint {}", files.paid(), files.path("public.csv")), &["different files"]);
    refused(&format!("{} --expected-batch 1000000", files.paid()), &["expected-batch"]);
    assert_eq!(entries(&files.folder), ["private.csv", "public.csv", "test.csv"]);
    let ran = run(&format!("{} --checkpoint none", files.paid()));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(entries(&files.folder), ["model.json", "private.csv", "public.csv", "test.csv"]);
}

/// Killed with SIGKILL after its first steps, a run has left its debit in the ledger's own file: a copy of that file
/// alone shows it, before the kill and after. The ledger may also be removed and made anew.
#[test]
fn a_copy_of_the_ledger_file_shows_what_a_killed_run_spent() {
    let files = Files::new("interrupted-copy", Target::TwoWords);
    let account = format!("--ledger {} --dataset rows", files.path("budget.ledger"));
    let set = run(&format!("ledger init {account} --epsilon 4 --delta 1e-5"));
    assert_eq!(set.code, 0, "{}", set.stderr);
    let command = format!("{} {account}", files.paid().replace("--steps 20", "--steps 900"));
    let mut child = start(&format!("{command} --seed 5 --checkpoint-every 0"));
    wait_for_steps(&files, "model.json.checkpoint");
    let spent = |name: &str| {
        std::fs::copy(files.folder.join("budget.ledger"), files.folder.join(name)).unwrap();
        let shown = json(&format!("ledger show --ledger {}", files.path(name)));
        shown["datasets"][0]["debits"].as_array().unwrap().len()
    };
    assert_eq!(spent("running.ledger"), 1);
    signal(&child, "KILL");
    child.wait().unwrap();
    assert_eq!(spent("killed.ledger"), 1);
    let beside: Vec<String> = entries(&files.folder)
        .into_iter()
        .filter(|name| name.starts_with("budget.ledger") && name != "budget.ledger")
        .collect();
    assert_eq!(beside, [""; 0]);
    std::fs::remove_file(files.folder.join("budget.ledger")).unwrap();
    let again = run(&format!("ledger init {account} --epsilon 4 --delta 1e-5"));
    assert_eq!(again.code, 0, "{}", again.stderr);
    assert_eq!(spent("anew.ledger"), 0);
}

/// The folder of the model is removed while it is trained: the model was paid for, and goes to standard output.
#[test]
fn a_model_whose_folder_is_gone_is_printed() {
    let central = "--epsilon 4 --delta 1e-5 --steps 4000";
    for (name, options) in [
        ("often", format!("{central} --checkpoint-every 0")),
        ("seldom", central.into()),
        ("local", "--epsilon 4 --trust local --algorithm semi-ldp-sgd".into()),
    ] {
        let files = Files::new(&format!("interrupted-folder-{name}"), Target::Number);
        let folder = files.folder.join("results");
        std::fs::create_dir(&folder).unwrap();
        let delta = if name == "local" {
            files.write("private.csv", &rows::rows(30_000, Target::Number, 2));
            ""
        } else {
            "--delta 1e-4"
        };
        let at = files.folder.display();
        let ledger = format!("--ledger {at}/l --dataset d");
        assert_eq!(run(&format!("ledger init {ledger} --epsilon 9 {delta}")).code, 0);
        let command = format!(
            "train --private {at}/private.csv --public {at}/public.csv --target y --out {at}/results/model.json {ledger} {options}"
        );
        let child = Command::new(SEMIDP)
            .args(command.split_whitespace())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let deadline = Instant::now() + Duration::from_secs(120);
        while json(&format!("ledger show --ledger {at}/l"))["datasets"][0]["debits"] == serde_json::json!([])
        {
            assert!(Instant::now() < deadline, "no debit");
        }
        while std::fs::remove_dir_all(&folder).is_err() {}
        let ran: Ran = child.wait_with_output().unwrap().into();
        assert_eq!(ran.code, 1, "{name}: {}", ran.stderr);
        assert!(ran.stderr.contains("the model is on standard output"), "{name}: {}", ran.stderr);
        assert!(!ran.stderr.contains("--resume") && !ran.stderr.contains("same command"), "{}", ran.stderr);
        let model: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!(model["format"], "semidp-model/1", "{name}");
    }
}
