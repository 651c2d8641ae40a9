//! Schemas from public files and from JSON, and encodings.

mod support;

use semidp_table::{Encoding, Error, Feature, Schema};
use support::{category, number, write};

#[test]
fn numbers_and_categories_are_told_apart() {
    let text = "id,age, job ,flag,gap,odd\n\
                a,20,x,true,,1e999\n\
                b, 40 ,?,false,NA,2\n\
                a,-, y ,true,7,other\n";
    let error = Schema::infer(write("mixed.csv", text), None).unwrap_err();
    assert_eq!(error.to_string().split(" of ").next(), Some("column odd"));
    assert!(error.to_string().ends_with("holds both numbers and text"), "{error}");

    let inferred = Schema::infer(write("infer.csv", text.replace(",other\n", ",4\n")), None).unwrap();
    let expected = Schema::new(vec![
        category("id", &["a", "b"]),
        number("age", 30.0, None),
        category("job", &["x", "y"]),
        category("flag", &["false", "true"]),
        number("gap", 7.0, None),
        number("odd", 3.0, None),
    ]);
    assert_eq!(inferred.schema, expected.unwrap());
    assert!(inferred.skipped.is_empty());
    assert_eq!(inferred.schema.numbers(), ["age", "gap", "odd"]);

    let some = Schema::infer(write("some.csv", text), Some(&["gap", "id"])).unwrap().schema;
    assert_eq!(some, inferred.schema.select(&["gap", "id"]).unwrap());
}

#[test]
fn what_inference_refuses() {
    let infer = |name: &str, text: &str| Schema::infer(write(name, text), None).unwrap_err();
    let error = infer("twice.csv", "a,b,a\n1,2,3\n");
    assert!(matches!(&error, Error::DuplicateColumn { column, .. } if column == "a"), "{error}");
    let error = infer("hollow.csv", "a,b\n1,\n2,NULL\n");
    assert!(matches!(&error, Error::EmptyColumn { column, .. } if column == "b"), "{error}");
    let error = infer("endless.csv", "a,b\ninf,1\n-inf,2\n");
    assert!(matches!(&error, Error::EmptyColumn { column, .. } if column == "a"), "{error}");
    let error = infer("bare.csv", "a,b\n");
    assert!(error.to_string().ends_with("bare.csv has no rows"), "{error}");
    let many: String = (0..=1000).map(|i| format!("v{i}\n")).collect();
    let error = infer("many.csv", &format!("a\n{many}"));
    assert!(error.to_string().ends_with("has more than 1000 different values"), "{error}");
    let error = Schema::infer(write("columns.csv", "a,b\n1,2\n"), Some(&["a", "c", "d"])).unwrap_err();
    assert!(
        error
            .to_string()
            .ends_with("lacks the columns c, d; its columns are those that its first line names"),
        "{error}"
    );
    // The column that some libraries write for the row numbers.
    let inferred = Schema::infer(write("index.csv", ",a\n0,5\n1,7\n"), None).unwrap();
    assert_eq!((inferred.schema.columns().len(), inferred.skipped.len()), (1, 1));
}

#[test]
fn means_of_great_numbers_are_finite() {
    let text = format!("a\n{0}\n{0}\n{0}\n", f64::MAX);
    let schema = Schema::infer(write("great.csv", text), None).unwrap().schema;
    assert_eq!(schema, Schema::new(vec![number("a", f64::MAX, None)]).unwrap());
}

#[test]
fn json_goes_around() {
    let schema = Schema::new(vec![
        number("age", 1.0 / 3.0, Some((-0.0, 1e300))),
        number("n", -7.25, None),
        category("job", &["größer", "a\"b", "1"]),
    ])
    .unwrap();
    assert_eq!(Schema::from_json(&schema.to_json()).unwrap(), schema);
    assert_eq!(serde_json::from_str::<Schema>(&schema.to_json()).unwrap(), schema);

    let error = Schema::from_json(r#"{"format": "semidp-schema/2", "tables": []}"#).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the schema is in format semidp-schema/2; this version reads semidp-schema/1"
    );
    let columns = |columns: &str| {
        Schema::from_json(&format!(r#"{{"format": "semidp-schema/1", "columns": [{columns}]}}"#))
    };
    assert!(columns(r#"{"kind": "number", "name": "a", "impute": 0}"#).is_ok());
    for bad in [
        r#"{"kind": "number", "name": "a"}"#,
        r#"{"kind": "number", "name": "a", "impute": 0, "scale": 1}"#,
        r#"{"kind": "date", "name": "a", "impute": 0}"#,
        r#"{"kind": "number", "name": "a", "impute": 0, "range": [1, 0]}"#,
        r#"{"kind": "number", "name": "a", "impute": 5, "range": [0, 1]}"#,
        r#"{"kind": "number", "name": "a", "impute": 0}, {"kind": "number", "name": "a", "impute": 1}"#,
        r#"{"kind": "category", "name": "a", "values": ["x", "x"]}"#,
        r#"{"kind": "category", "name": "a", "values": ["other"]}"#,
        r#"{"kind": "category", "name": "a", "values": [" x"]}"#,
        r#"{"kind": "category", "name": "a", "values": ["NA"]}"#,
    ] {
        assert!(columns(bad).is_err(), "{bad}");
    }
    for bad in ["", "[]", "{}", r#"{"columns": []}"#, r#"{"format": 1, "columns": []}"#] {
        assert!(matches!(Schema::from_json(bad), Err(Error::MalformedSchema { .. })), "{bad}");
    }
}

#[test]
fn columns_by_name() {
    let schema = Schema::new(vec![number("a", 5.0, None), category("b", &["x"])]).unwrap();
    let error = schema.select(&["b", "c"]).unwrap_err();
    assert_eq!(error.to_string(), "there is no column c; the columns are a, b");
    let ranged = schema.clone().with_range("a", 0.0, 2.0).unwrap();
    assert_eq!(ranged.columns()[0], number("a", 2.0, Some((0.0, 2.0))));
    assert!(schema.clone().with_range("a", 2.0, 0.0).is_err());
    assert!(schema.clone().with_range("a", f64::NAN, 0.0).is_err());
    assert!(schema.with_range("b", 0.0, 1.0).is_err());
}

#[test]
fn encodings_fit_their_schema() {
    let schema = Schema::new(vec![category("b", &["x", "y"]), number("a", 5.0, None)]).unwrap();
    let encoding = Encoding::with_shift_and_scale(&schema, |column| (column as f64, 2.0)).unwrap();
    assert_eq!(encoding.names(), ["b=x", "b=y", "b=other", "a"]);
    assert_eq!(encoding.features()[3], Feature::Number { column: 1, shift: 1.0, scale: 2.0 });
    assert_eq!(encoding.features()[2], Feature::Indicator { column: 0, value: None });
    assert!(encoding.is_sparse() && encoding.width() == 4);
    let json = serde_json::to_string(encoding.features()).unwrap();
    let features: Vec<Feature> = serde_json::from_str(&json).unwrap();
    assert_eq!(Encoding::new(&schema, features).unwrap(), encoding);
    for bad in [
        vec![],
        vec![Feature::Number { column: 0, shift: 0.0, scale: 1.0 }],
        vec![Feature::Number { column: 2, shift: 0.0, scale: 1.0 }],
        vec![Feature::Number { column: 1, shift: 0.0, scale: 0.0 }],
        vec![Feature::Number { column: 1, shift: f64::NAN, scale: 1.0 }],
        vec![Feature::Indicator { column: 1, value: None }],
        vec![Feature::Indicator { column: 0, value: Some(2) }],
    ] {
        assert!(matches!(Encoding::new(&schema, bad), Err(Error::InvalidFeature { .. })));
    }
}

#[test]
fn a_persons_own_file_is_numbers_as_they_are() {
    let file = write("own.csv", "a,b\n1,x\n,2\n");
    let expected = |names: &[&str]| Schema::new(names.iter().map(|name| number(name, 0.0, None)).collect());
    assert_eq!(Schema::of_numbers(&file, None).unwrap(), expected(&["a", "b"]).unwrap());
    // Whether the file has a column is seen when it is opened.
    assert_eq!(Schema::of_numbers(&file, Some(&["c"])).unwrap(), expected(&["c"]).unwrap());
    for (name, text) in [("bare.csv", "0.25,0.5\n1,2\n"), ("same.csv", "secret,secret\n1,2\n")] {
        let error = Schema::of_numbers(write(name, text), None).unwrap_err().to_string();
        assert!(error.contains(name) && !error.contains("0.25") && !error.contains("secret"), "{error}");
    }
    // Nobody says how many columns there are but the rows.
    assert!(Schema::of_numbers(write("own.data", "1,2\n"), None).is_err());
    assert_eq!(Schema::of_numbers(write("own.data", "1,2\n"), Some(&["x1"])).unwrap().columns().len(), 1);
}
