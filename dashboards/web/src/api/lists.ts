// Generated from query/api/openapi.json: npm run generate.

/** LISTS are the members of answers that are lists. */
export const LISTS = new Set(`
  added almost answers apiGroups apiservers attack authenticators because bindings cacheLags chain changes checks classes clusters
  columns contradictions counts credentials dangers decisions doubted edges errors examples except explained facets failures
  findings firstUses flaws gained gaps groups hints identity jobs keeps like likely losses lost missingAfter missingBefore
  missingRoles names namespaces near nonResourceURLs objects organizations outcomes owned paths presumes problems proofs quiet
  reaches resourceNames resources roles rows rulesMissing scopes stages steps subjects suggestions transitions undoes unseen usage
  uses values verbs warnings where writes
`.trim().split(/\s+/));
