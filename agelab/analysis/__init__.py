"""Results judged: cells grouped by run seed, compared under both floors."""
