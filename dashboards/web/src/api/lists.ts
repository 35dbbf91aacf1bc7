// Generated from query/api/openapi.json: npm run generate.

/** LISTS are the members of answers that are lists. */
export const LISTS = new Set(`
  added almost answers apiGroups apiservers attack authenticators backtests because bindings cacheLags chain changes checks
  classes closed clusters columns contradictions counts credentials dangers decisions doubted edges errors examples except
  explained facets failures findings firstUses flaws forms gaps groups hints identity jobs keeps like likely losses lost
  missingAfter missingBefore missingRoles names namespaces near nonResourceURLs notes opened organizations outcomes owned paths
  presumes problems proofs quiet reaches resourceNames resources roles rows rulesMissing sample scopes stages steps suggestions
  transitions undoes unseen usage uses values verbs warnings where writes
`.trim().split(/\s+/));
