package main

import (
	"context"
	"fmt"
	"net/http"
	"os"

	"example/clients"
	"example/operators"
)

func must[T any](value T, _ *http.Response, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func main() {
	ctx, origin := context.Background(), os.Getenv("ORIGIN")
	config := clients.NewConfiguration()
	config.Servers[0].URL = origin + "/v1"
	client := clients.NewAPIClient(config)
	me := must(client.AccountAPI.CreateAccount(ctx).AccountCreation(*clients.NewAccountCreation("Élan")).Execute())
	ctx = context.WithValue(ctx, clients.ContextAccessToken, me.ApiKey)
	pet := must(client.AnimalsAPI.CreatePet(ctx).PetCreation(*clients.NewPetCreation("Élan", 1<<62)).Execute())
	change := clients.PetPatch{Status: clients.SOLD.Ptr()}
	must(client.AnimalsAPI.UpdatePet(ctx, pet.Id).PetPatch(change).Execute())
	for _, pet := range must(client.AnimalsAPI.ListPets(ctx).Execute()) {
		fmt.Println(pet.Name, pet.CategoryId, pet.Status)
	}
	_, _, err := client.AnimalsAPI.CreatePet(ctx).PetCreation(*clients.NewPetCreation("\u0085", 1)).Execute()
	refused := err.(*clients.GenericOpenAPIError).Model().(clients.Error)
	fmt.Println(refused.Code, refused.GetField())
	for _, specimen := range must(client.SpecimensAPI.ListSpecimens(ctx).Execute()) {
		number, _ := specimen.LongNullable.MarshalJSON()
		fmt.Println(specimen.TextPlain, string(number))
	}

	desk := operators.NewConfiguration()
	desk.Servers[0].URL = origin + "/operator/v1"
	operator := operators.NewAPIClient(desk)
	ctx = context.WithValue(ctx, operators.ContextAccessToken, os.Getenv("OPERATOR_TOKEN"))
	must(operator.AccountsAPI.CreateAccount(ctx).AccountCreation(*operators.NewAccountCreation("Élan")).Execute())
	for _, account := range must(operator.AccountsAPI.ListAccounts(ctx).Execute()) {
		fmt.Println(account.Name, account.Plan)
	}
}
